"""The families of codes, and the complete details of a refusal: what is blocked, why, the evidence and the choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from idumb.domain.action import Action
from idumb.domain.decision import Choice
from idumb.domain.refusals.choices import (
    CHECK,
    DIFF,
    DOCTOR,
    GIT_STATUS,
    HANDOFFS,
    HELP,
    IMPORT,
    LETTERS,
    QUESTIONS,
    ROADMAP,
    ROWS,
    STATUS,
    WORKFLOWS,
    filled,
)


class Family(NamedTuple):
    """What codes that start with one of `prefixes` block. `hint` stands for that of an error without one.

    `ways` are the choices of a code without a row, as far as the details of the error fill them in.
    """

    prefixes: str
    blocked: str
    hint: str = ""
    ways: tuple[Choice, ...] = ()


FAMILIES = (
    Family("agent fake-model mcp script", "Start this program", "Correct the binding in .idumb/config.yaml", (DOCTOR,)),
    Family(
        "role", "Use an agent's answer", "Run the command again, or choose another binding for that role", (DOCTOR,)
    ),
    Family("install init project state deinit", "Set idumb up or remove it", ways=(DOCTOR,)),
    Family("config policy prompt sandbox setup", "Use the configuration", "Correct the errors", (DOCTOR,)),
    Family("git", "Work in this repository", ways=(GIT_STATUS,)),
    Family("checkout", "Run programs in a checkout", ways=(DOCTOR,)),
    Family("store audit doctor snapshots contract", "Rely on the event log", ways=(DOCTOR,)),
    Family("lock stop", "Continue the run in this working tree", ways=(STATUS,)),
    Family("backup", "Write or use a backup", "Choose another name", (DOCTOR,)),
    Family("file system", "Use that path", "Check its owner and its mode, then run the command again", (STATUS,)),
    Family("phase plan mode template roadmap quick", "Read or write the plan", "Correct it in an editor", (CHECK,)),
    Family("research question", "Plan the phase", "Choose another name", (ROADMAP,)),
    Family("import", "Import a plan", "Run the command again with the path of the plan", (IMPORT,)),
    Family("consent approval irreversible", "Run the phase with consent", "Approve the phase again", (CHECK,)),
    Family("amend", "Amend the plan", "Change the plan in an editor, then idumb amend --from-file", (DIFF,)),
    Family("workflow", "Run the workflow", ways=(WORKFLOWS,)),
    Family("run task attempt accept skip drop resume envelope dry-run", "Continue the run", ways=(STATUS,)),
    Family("prove verification", "Verify the phase", ways=(STATUS,)),
    Family("rollback undo secret", "Restore files", ways=(STATUS,)),
    Family("decision", "Answer the question", ways=(QUESTIONS,)),
    Family("dead-letter", "Retry the dead letter", ways=(LETTERS,)),
    Family("handoff", "Change the handoff", ways=(HANDOFFS,)),
    Family("log usage internal", "Run this command", ways=(HELP,)),
)
_BY_PREFIX: Mapping[str, Family] = {prefix: family for family in FAMILIES for prefix in family.prefixes.split()}

_ASKED = frozenset({"what", "why", "evidence", "choices"})
_MOST = 50


def family(code: str) -> Family | None:
    return _BY_PREFIX.get(code.partition(".")[0])


def complete(code: str, message: str, hint: Action | str | None, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details with what is blocked, why, the evidence and the choices; present values are kept."""
    known = family(code)
    if known is None:
        return dict(details)
    return {
        **details,
        "what": details.get("what") or known.blocked,
        "why": details.get("why") or message,
        "evidence": details.get("evidence") or [*_evidence(details)][:_MOST] or [message],
        "choices": details.get("choices") or _choices(code, known, hint, details),
    }


def _choices(code: str, known: Family, hint: Action | str | None, details: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the commands that a user can choose. If there is none, what to do is the hint, in words."""
    rows = [
        {"id": way.id, "text": way.text, "consequence": way.consequence, "command": command}
        for way in ROWS.get(code, () if hint and (isinstance(hint, Action) or not known.hint) else known.ways)
        if (command := filled(way.command, details)) is not None
    ]
    if code in ROWS and rows:
        return rows
    text = str(hint or known.hint or "correct what the message names")
    command = hint if isinstance(hint, Action) else None
    first = {"id": "next", "text": text, "consequence": "then run the command again", "command": command}
    return [first, *rows] if hint or known.hint or not rows else rows


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
