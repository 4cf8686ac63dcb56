"""Render the answer of a command: one JSON object for programs, or plain text for people, from the same data."""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` is slow, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Data = Mapping[str, Any]

SCHEMA = 1

# The commands that each module answers. A module is imported only when its command runs.
_MODULES = {
    "set_up": ("init", "install", "doctor", "backup", "archive", "deinit", "schema", "help"),
    "plan": (
        "plan",
        "plan discuss",
        "plan research",
        "plan-phase",
        "check-plan",
        "check-plan --verbose",
        "graph",
        "import",
    ),
    "run": ("execute-phase", "execute", "quick", "resume", "stop", "verify-work", "rollback", "undo"),
    "decide": (
        "check-plan --diff",
        "approve",
        "amend",
        "handoff",
        "dlq",
        "accept",
        "skip",
        "drop",
        "decisions",
        "decide",
    ),
    "look": ("show", "show --plan", "show --diff", "show --envelope", "show --usage", "report", "log", "audit"),
    "status": ("status", "next", "roadmap"),
    "debug": ("show --debug",),
    "prove": ("prove",),
    "workflows": ("workflow",),
    "editor": ("start", "take", "submit", "give-up", "mcp", "fake-model"),
}
# Functions that do not have the name of their command.
_FUNCTIONS = {
    "check-plan --verbose": "check_plan_in_full",
    "check-plan --diff": "plan_diff",
    **{f"show --{view}": view for view in ("plan", "diff", "envelope", "usage", "debug")},
    "plan": "new_plan",
    "plan discuss": "discuss",
    "plan research": "research",
    "import": "import_plan",
    "next": "upcoming",
    **dict.fromkeys(("execute-phase", "execute", "quick", "resume"), "ended"),
    **dict.fromkeys(("accept", "skip"), "settled"),
    **dict.fromkeys(("rollback", "undo"), "rolled_back"),
    "take": "start",
    "mcp": "tools",
    "fake-model": "serving",
    "help": "help_page",
}


def render(command: str, data: Data) -> str:
    """Return the text for people, ending with a newline unless empty. `data` is the `data` of the JSON answer."""
    from importlib import import_module

    names = (command, command.partition(" ")[0])
    module, command = next((name, word) for word in names for name, own in _MODULES.items() if word in own)
    function = _FUNCTIONS.get(command, command.replace("-", "_"))
    renderer: Callable[[Data], str] = getattr(import_module(f"idumb.views.answers.{module}"), function)
    return renderer(data)


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

    lines = [line for item in findings for line in phrases.finding(item)]
    error = [f"idumb: {markup.one_line(message)} [{code}]"]
    fields = details or {}
    ways = phrases.choices(fields.get("choices", ()))
    evidence = [f"  - {markup.one_line(str(item))}" for item in fields.get("evidence", ())] if ways else []
    hidden = len(evidence) - phrases.MOST_EVIDENCE
    shown = [*evidence[: phrases.MOST_EVIDENCE], *([f"  - and {hidden} more"] if hidden > 0 else [])]
    following = [f"  next: {markup.one_line(hint)}"] if hint else []
    following += phrases.resolving(fields["files"]) if code == "rollback.conflict" else []
    return "\n".join([*lines, *error, *shown, *following, *ways]) + "\n"
