"""What every refusal states besides its message: what is blocked, why, the evidence, and the choices.

A choice is mostly the hint of the error, which is written where the error is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from idumb.domain.action import Action, Choice


class Family(NamedTuple):
    """What codes that start with one of `prefixes` block.

    An error without a hint offers `hint` and the choice `way`, whose command may need the detail `phase`.
    """

    prefixes: str
    blocked: str
    hint: str = ""
    way: Choice | None = None


def _look(text: str, command: str, id: str = "look") -> Choice:
    return Choice(id, text, "this only reads", command)


_STATUS = _look("see the state of the run", "idumb status")
_DOCTOR = _look("see what is wrong and how to fix it", "idumb doctor", "examine")
_CHECK = _look("see every error with its line", "idumb check-plan {phase}", "check")
_DIFF = _look("see what changed", "idumb check-plan {phase} --diff")
FAMILIES = (
    Family("agent fake-model mcp script", "Start this program", "Correct the binding in .idumb/config.yaml", _DOCTOR),
    Family("role", "Use an agent's answer", "Run the command again, or choose another binding for that role", _DOCTOR),
    Family("install init project state deinit", "Set idumb up or remove it", way=_DOCTOR),
    Family("config policy prompt sandbox setup", "Use the configuration", "Correct the errors", _DOCTOR),
    Family("git", "Work in this repository", way=_look("see the state of the repository", "git status")),
    Family("checkout", "Run programs in a checkout", way=_DOCTOR),
    Family("store audit doctor snapshots", "Rely on the event log", way=_DOCTOR),
    Family("lock stop", "Continue the run in this working tree", way=_STATUS),
    Family("backup", "Write or use a backup", "Choose another name", _DOCTOR),
    Family("file system", "Use that path", "Check its owner and its mode, then run the command again", _STATUS),
    Family("phase plan mode template roadmap quick", "Read or write the plan", "Correct it in an editor", _CHECK),
    Family("research question", "Plan the phase", "Choose another name", _look("list the phases", "idumb roadmap")),
    Family("import", "Import a plan", "Run the command again with the path of the plan"),
    Family("consent approval irreversible", "Run the phase with consent", "Approve the phase again", _CHECK),
    Family("amend", "Amend the plan", "Change the plan in an editor, then idumb amend --from-file", _DIFF),
    Family("workflow", "Run the workflow", way=_look("list the workflows", "idumb workflow list", "list")),
    Family("run task attempt accept skip drop resume envelope dry-run", "Continue the run", way=_STATUS),
    Family("prove verification", "Verify the phase", way=_STATUS),
    Family("rollback undo secret", "Restore files", way=_STATUS),
    Family("decision", "Answer the question", way=_look("list the open questions", "idumb decisions", "list")),
    Family("dead-letter", "Retry the dead letter", way=_look("list all dead letters", "idumb dlq list", "list")),
    Family("handoff", "Change the handoff", way=_look("list all handoffs", "idumb handoff list", "list")),
    Family("log usage internal", "Run this command", way=_look("see the commands", "idumb --help", "help")),
)
_BY_PREFIX: Mapping[str, Family] = {prefix: family for family in FAMILIES for prefix in family.prefixes.split()}
ROWS: Mapping[str, tuple[Choice, ...]] = {
    "lock.held": (
        Choice("wait", "wait until it ends", "then run the command again", "idumb status"),
        Choice("stop", "stop the running command", "it stops at the next safe point and saves its state", "idumb stop"),
        Choice(
            "force",
            "if it is dead or does not respond, stop it by force",
            "it can no longer write; idumb resume then recovers its work",
            "idumb stop --force",
        ),
    ),
    "run.interrupted": (
        Choice("resume", "continue the run", "completed tasks stay completed", "idumb resume {phase}"),
    ),
}
"""Codes whose choices have different consequences, whatever their hint says."""

_ASKED = frozenset({"what", "why", "evidence", "choices"})
_MOST = 50


def family(code: str) -> Family | None:
    return _BY_PREFIX.get(code.partition(".")[0])


def details_of(code: str, message: str, hint: Action | str | None, details: Mapping[str, Any]) -> dict[str, Any]:
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
    """Return what a user can choose: the code's own choices, the hint, or what the family offers."""
    ways = ROWS.get(code, () if hint or known.way is None else (known.way,))
    rows = [{**way.row(), "command": command} for way in ways if (command := command_of(way, details)) is not None]
    if rows and (code in ROWS or not known.hint):
        return rows
    text = str(hint or known.hint or "correct what the message names")
    command = hint if isinstance(hint, Action) else None
    return [{"id": "next", "text": text, "consequence": "then run the command again", "command": command}, *rows]


def command_of(way: Choice, details: Mapping[str, Any]) -> Action | None:
    """Return the command with its phase; None without one, so that nobody runs half a command."""
    words = str(way.command).split()
    if "{phase}" in words and not details.get("phase"):
        return None
    program, verb, *arguments = (str(details.get("phase")) if word == "{phase}" else word for word in words)
    return Action(verb, tuple(arguments), program=program)


def failure_details(message: str, details: Mapping[str, Any], *, interrupted: bool = False) -> dict[str, Any]:
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
