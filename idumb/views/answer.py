"""What commands print: one JSON object for programs, plain text for people. Both are made from the same data."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is dear, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Data = Mapping[str, Any]

SCHEMA = 1

# Command to module and function. The module is imported when its command is run: `idumb status` pays for no other.
_RENDERERS = {
    "init": ("answer_plan", "init"),
    "discuss": ("answer_planning", "discuss"),
    "research": ("answer_planning", "research"),
    "plan-phase": ("answer_planning", "plan_phase"),
    "check-plan": ("answer_plan", "check_plan"),
    "check-plan --verbose": ("answer_plan", "check_plan_in_full"),
    "plan-diff": ("answer_amend", "plan_diff"),
    "approve": ("answer_approval", "approve"),
    "amend": ("answer_amend", "amend"),
    "graph": ("answer_plan", "graph"),
    "status": ("answer_status", "status"),
    "next": ("answer_status", "upcoming"),
    "roadmap": ("answer_status", "roadmap"),
    "execute-phase": ("answer_run", "ended"),
    "execute": ("answer_run", "ended"),
    "quick": ("answer_run", "ended"),
    "start": ("answer_editor", "started"),
    "submit": ("answer_editor", "submitted"),
    "give-up": ("answer_editor", "given_up"),
    "mcp": ("answer_editor", "tools"),
    "resume": ("answer_run", "ended"),
    "pause": ("answer_run", "paused"),
    "cancel": ("answer_run", "cancelled"),
    "verify-work": ("answer_run", "verified"),
    "accept": ("answer_run", "settled"),
    "skip": ("answer_run", "settled"),
    "decisions": ("answer_run", "decisions"),
    "decide": ("answer_run", "decided"),
    "debug": ("answer_debug", "debug"),
    "handoff": ("answer_handoff", "handoff"),
    "dlq": ("answer_dead_letter", "dlq"),
    "rollback": ("answer_run", "rolled_back"),
    "undo": ("answer_run", "rolled_back"),
    "show": ("answer_task", "show"),
    "envelope": ("answer_envelope", "envelope"),
    "diff": ("answer_task", "diff"),
    "metrics": ("answer_metrics", "metrics"),
    "log": ("answer_task", "log"),
    "audit": ("answer_task", "audit"),
    "help": ("answer_help", "shown"),
    "backup": ("answer_log_files", "backup"),
    "archive": ("answer_log_files", "archive"),
    "fake-model": ("answer_fake_model", "serving"),
    "install": ("answer_install", "install"),
    "doctor": ("answer_doctor", "doctor"),
    "deinit": ("answer_doctor", "deinit"),
}


def render(command: str, data: Data) -> str:
    """The text for people, ending with a newline where there is any. `data` is the `data` of the JSON answer."""
    from importlib import import_module

    module, function = _RENDERERS[command]
    made: Callable[[Data], str] = getattr(import_module(f"idumb.views.{module}"), function)
    return made(data)


def whole(
    command: str, *, data: Data | None, warnings: Sequence[str] = (), error: Data | None = None
) -> dict[str, Any]:
    """The object that `--json` prints: docs/json.md. `error` has code, message, hint and details."""
    return {
        "schema": SCHEMA,
        "command": command,
        "ok": error is None,
        "data": dict(data or {}),
        "warnings": list(warnings),
        "error": None if error is None else _stated({"hint": None, "details": {}, **error}),
    }


def _stated(error: dict[str, Any]) -> dict[str, Any]:
    """The error with all that a refusal states, from its code where it does not say so itself."""
    from idumb.domain.refusals import table

    return {**error, "details": table.complete(error["code"], error["message"], error["hint"], error["details"])}


def failure(
    code: str, message: str, hint: str | None, findings: Sequence[Data] = (), details: Data | None = None
) -> str:
    """What goes to standard error: every finding, what went wrong, the evidence, the next command and all choices."""
    from idumb.views import markup, phrases

    found = [line for one in findings for line in phrases.finding(one)]
    said = [f"idumb: {markup.one_line(message)} [{code}]"]
    given = details or {}
    ways = phrases.choices(given.get("choices", ()))
    evidence = [f"  - {markup.one_line(str(one))}" for one in given.get("evidence", ())] if ways else []
    hidden = len(evidence) - phrases.MOST_EVIDENCE
    shown = [*evidence[: phrases.MOST_EVIDENCE], *([f"  - and {hidden} more"] if hidden > 0 else [])]
    return "\n".join([*found, *said, *shown, *([f"  next: {markup.one_line(hint)}"] if hint else []), *ways]) + "\n"
