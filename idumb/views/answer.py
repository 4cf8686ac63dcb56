"""Render the answer of a command: one JSON object for programs, or plain text for people, from the same data."""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` is slow, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Data = Mapping[str, Any]

SCHEMA = 1

# Command to module and function. A module is imported only when its command runs.
_RENDERERS = {
    "init": ("set_up", "init"),
    "discuss": ("plan", "discuss"),
    "research": ("plan", "research"),
    "plan-phase": ("plan", "plan_phase"),
    "check-plan": ("plan", "check_plan"),
    "check-plan --verbose": ("plan", "check_plan_in_full"),
    "plan-diff": ("decide", "plan_diff"),
    "approve": ("decide", "approve"),
    "amend": ("decide", "amend"),
    "graph": ("plan", "graph"),
    "status": ("status", "status"),
    "next": ("status", "upcoming"),
    "roadmap": ("status", "roadmap"),
    "execute-phase": ("run", "ended"),
    "execute": ("run", "ended"),
    "quick": ("run", "ended"),
    "start": ("editor", "started"),
    "submit": ("editor", "submitted"),
    "give-up": ("editor", "given_up"),
    "mcp": ("editor", "tools"),
    "resume": ("run", "ended"),
    "pause": ("run", "paused"),
    "cancel": ("run", "cancelled"),
    "verify-work": ("run", "verified"),
    "accept": ("run", "settled"),
    "skip": ("run", "settled"),
    "decisions": ("run", "decisions"),
    "decide": ("run", "decided"),
    "debug": ("debug", "debug"),
    "handoff": ("decide", "handoff"),
    "dlq": ("decide", "dlq"),
    "rollback": ("run", "rolled_back"),
    "undo": ("run", "rolled_back"),
    "show": ("look", "show"),
    "envelope": ("look", "envelope"),
    "diff": ("look", "diff"),
    "metrics": ("look", "metrics"),
    "log": ("look", "log"),
    "audit": ("look", "audit"),
    "help": ("set_up", "help_page"),
    "backup": ("set_up", "backup"),
    "archive": ("set_up", "archive"),
    "fake-model": ("editor", "serving"),
    "install": ("set_up", "install"),
    "doctor": ("set_up", "doctor"),
    "deinit": ("set_up", "deinit"),
}


def render(command: str, data: Data) -> str:
    """Return the text for people, ending with a newline unless empty. `data` is the `data` of the JSON answer."""
    from importlib import import_module

    module, function = _RENDERERS[command]
    made: Callable[[Data], str] = getattr(import_module(f"idumb.views.answers.{module}"), function)
    return made(data)


def whole(
    command: str, *, data: Data | None, warnings: Sequence[str] = (), error: Data | None = None
) -> dict[str, Any]:
    """Return the object that `--json` prints (docs/json.md). `error` has code, message, hint and details."""
    return {
        "schema": SCHEMA,
        "command": command,
        "ok": error is None,
        "data": dict(data or {}),
        "warnings": list(warnings),
        "error": None if error is None else _stated({"hint": None, "details": {}, **error}),
    }


def _stated(error: dict[str, Any]) -> dict[str, Any]:
    """Return the error with every detail of a refusal, completed from its code."""
    from idumb.domain.refusals import table

    return {**error, "details": table.complete(error["code"], error["message"], error["hint"], error["details"])}


def failure(
    code: str, message: str, hint: str | None, findings: Sequence[Data] = (), details: Data | None = None
) -> str:
    """Return the text for standard error: findings, error, evidence, next command and choices."""
    from idumb.views import markup, phrases

    found = [line for one in findings for line in phrases.finding(one)]
    said = [f"idumb: {markup.one_line(message)} [{code}]"]
    given = details or {}
    ways = phrases.choices(given.get("choices", ()))
    evidence = [f"  - {markup.one_line(str(one))}" for one in given.get("evidence", ())] if ways else []
    hidden = len(evidence) - phrases.MOST_EVIDENCE
    shown = [*evidence[: phrases.MOST_EVIDENCE], *([f"  - and {hidden} more"] if hidden > 0 else [])]
    return "\n".join([*found, *said, *shown, *([f"  next: {markup.one_line(hint)}"] if hint else []), *ways]) + "\n"
