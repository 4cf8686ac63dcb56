"""The texts of requirements that a plan names: its own, or the line of REQUIREMENTS.md that begins with the id."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.domain.plans.plan import Plan

_MARKS = "-*+#>|[] `"
"""What may stand before an id in Markdown."""


def described(plan: Plan, ids: Iterable[str], document: str) -> tuple[str, ...]:
    """Return `ID: text` of each requirement; `document` is the text of REQUIREMENTS.md, "" without one."""
    lines = document.splitlines()
    texts = {
        id: plan.requirements.get(id) or next(filter(None, (_after(each, id) for each in lines)), "") for id in ids
    }
    return tuple(f"{id}: {text}" if text else id for id, text in texts.items())


def _after(line: str, id: str) -> str:
    """Return what a line says after an id that it begins with, or "". The id `R-1` does not begin `R-12`."""
    before, _, rest = line.partition(id)
    return "" if before.strip(_MARKS) or rest[:1].isalnum() else rest.strip(" *_`:|-–—")
