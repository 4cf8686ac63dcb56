"""Write plans whose tasks are YAML. A JSON value is valid YAML, so no word of a person becomes syntax."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from idumb.domain.plans.plan import FileClaim


def text(head: Mapping[str, str], tasks: Iterable[Mapping[str, object]]) -> str:
    """Return the text of a plan with these keys and tasks."""
    lines = ["---", "type: plan", *_lines(head), "---", "", "## Tasks"]
    for task in tasks:
        lines += ["", "```yaml task", *_lines(task), "```"]
    return "\n".join([*lines, ""])


def _lines(values: Mapping[str, object]) -> Iterator[str]:
    return (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def by_verb(files: Iterable[FileClaim]) -> dict[str, list[str]]:
    """Return claims as a YAML task has them."""
    claims: dict[str, list[str]] = {}
    for claim in files:
        claims.setdefault(claim.verb, []).append(claim.paths if claim.target else claim.path)
    return claims
