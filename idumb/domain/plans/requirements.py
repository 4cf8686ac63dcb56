"""The texts of requirements that a plan names: its own, or the line of REQUIREMENTS.md that begins with the id."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.domain.plans.plan import Plan

_MARKS = "-*+#>|[] `"
"""What may stand before an id in Markdown."""


def described(plan: Plan, ids: Iterable[str], document: str) -> tuple[str, ...]:
    """Return `ID: text` of each requirement; `document` is the text of REQUIREMENTS.md, "" without one."""
    return tuple(_described(id, plan.requirements.get(id, ""), document) for id in ids)


def _described(id: str, text: str, document: str) -> str:
    text = text or next((found for line in document.splitlines() if (found := _after(line, id))), "")
    return f"{id}: {text}" if text else id


def _after(line: str, id: str) -> str:
    """Return what a line says after an id that it begins with, or "". The id `R-1` does not begin `R-12`."""
    bare = line.lstrip(_MARKS)
    if not bare.startswith(id) or bare[len(id) : len(id) + 1].isalnum():
        return ""
    return bare[len(id) :].strip(" *_`:|-–—")
