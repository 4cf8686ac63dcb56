"""The rows of all codes, and the complete details of a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain.decision import Choice
from idumb.domain.refusals import agents, git, planning, questions, running, store
from idumb.domain.refusals.row import Row, filled

ROWS: Mapping[str, Row] = {**git.ROWS, **store.ROWS, **agents.ROWS, **questions.ROWS, **planning.ROWS, **running.ROWS}

_ASKED = frozenset({"what", "why", "evidence", "choices"})
_MOST = 50


def complete(code: str, message: str, hint: str | None, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details with what is blocked, why, the evidence and the choices; present values are kept."""
    row = ROWS.get(code)
    if row is None:
        return dict(details)
    return {
        **details,
        "what": details.get("what") or row.blocked,
        "why": details.get("why") or message,
        "evidence": details.get("evidence") or [*_evidence(details)][:_MOST] or [message],
        "choices": details.get("choices") or [_row(choice, hint, details) for choice in row.ways],
    }


def failed(message: str, details: Mapping[str, Any], *, interrupted: bool = False) -> dict[str, Any]:
    """Return the details of a failure: how it ended, at which step, with which tool and plan, its audit trail."""
    unknown: dict[str, Any] = {
        "status": "interrupted" if interrupted else "failed",
        "step_id": None,
        "tool": None,
        "error": message,
        "plan_hash": None,
        "audit_trail": [],
    }
    return {**unknown, **details}


def _row(choice: Choice, hint: str | None, details: Mapping[str, Any]) -> dict[str, Any]:
    command = filled(choice.command, hint, details)
    return {"id": choice.id, "text": choice.text, "consequence": choice.consequence, "command": command}


def _evidence(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the details that name something, one line each."""
    for name, value in details.items():
        if name in _ASKED:
            continue
        if name == "findings":
            yield from (f"{entry['path']}:{entry['line']}: {entry['message']}" for entry in value)
        elif isinstance(value, (str, int)) and value != "":
            yield f"{name}: {value}"
        elif isinstance(value, (list, tuple)) and value and all(isinstance(entry, str) for entry in value):
            yield from (f"{name}: {entry}" for entry in value)
