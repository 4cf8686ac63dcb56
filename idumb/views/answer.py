"""Render the answer of a command: one JSON object for programs, or plain text for people, from the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from idumb.domain.action import Action, plain
from idumb.views import markup, phrases

Data = Mapping[str, Any]

SCHEMA = 1


def render(text: str, data: Data) -> str:
    """Return the text for people, ending with a newline unless empty. `data` is the `data` of the JSON answer.

    `text` is `module.function` in `idumb.views.answers`. Every text in the data is escaped here, once.
    """
    module, _, function = text.partition(".")
    if module == "status" and "phases" not in data:
        module = "for_agents"  # the next task of one phase
    renderer: Callable[[Data], Sequence[str] | str] = getattr(import_module(f"idumb.views.answers.{module}"), function)
    if module == "status":  # it escapes its lines itself
        return str(renderer(data))
    data = plain(data)
    shown = data if text in _DOCUMENTS else escaped(data)
    lines = renderer(shown)
    return lines if isinstance(lines, str) else phrases.whole([*lines, *phrases.commands(shown)])


_DOCUMENTS = frozenset({"look.bundle", "plan.graph", "set_up.help_page", "set_up.schema"})
"""Answers that are documents of idumb's own: they are printed as they are."""
_BLOCKS = frozenset({"prompt", "diff", "output", "feedback", "source", "shown", "keep", "put_back"})
_BLOCKS_OF = frozenset({"handoff.summary", "handoff.next_steps", "diagnosis.text", "reports.text", ".text"})
"""Keys of texts with several lines; all other texts are printed on one line."""


def escaped(value: Any, key: str = "", parent: str = "") -> Any:
    """Return data with control characters as escapes, and each text on one line unless it is a block."""
    if isinstance(value, str):
        is_block = key in _BLOCKS or f"{parent}.{key}" in _BLOCKS_OF
        return markup.visible(value) if is_block else markup.one_line(value)
    if isinstance(value, dict):
        return {escaped(name): escaped(each, name, key) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(each, key, parent) for each in value]
    return value


def whole(
    command: str, *, data: Data | None, warnings: Sequence[str] = (), error: Data | None = None
) -> dict[str, Any]:
    """Return the object that `--json` prints (docs/json.md). `error` has code, message, hint and details."""
    stated = None if error is None else _stated({"hint": None, "details": {}, **error})
    return {
        "schema": SCHEMA,
        "command": command,
        "ok": error is None,
        "data": plain(data or {}),
        "ways": _ways(data or {}, stated or {}),
        "warnings": list(warnings),
        "error": plain(stated),
    }


def _ways(data: Data, error: Data) -> list[dict[str, Any]]:
    """Return each next step that the answer names, once, with the tool of `idumb mcp` that does the same."""
    following = data.get("next") or ()
    rows = [following] if isinstance(following, dict) else [{"command": step} for step in following]
    rows += [{"command": error["hint"]}] if isinstance(error.get("hint"), Action) else []
    rows += [*error.get("details", {}).get("choices", ()), *data.get("choices", ())]
    rows += [choice for question in data.get("decisions", ()) for choice in question["choices"]]
    ways: dict[str, dict[str, Any]] = {}
    for row in rows:
        step = row["command"]
        if step is not None:
            tool = step.tool if isinstance(step, Action) else row.get("tool")
            ways.setdefault(str(step), {"command": str(step), "tool": tool})
    return [*ways.values()]


def _stated(error: dict[str, Any]) -> dict[str, Any]:
    """Return the error with every detail of a refusal, completed from its code."""
    from idumb.domain import refusals

    return {**error, "details": refusals.complete(error["code"], error["message"], error["hint"], error["details"])}


def failure(
    code: str,
    message: str,
    hint: Action | str | None,
    findings: Sequence[Data] = (),
    details: Data | None = None,
    following: Sequence[Action | str] = (),
    *,
    width: int | None = None,
) -> str:
    """Return the text for standard error. `following` are the next commands of the answer, `hint` mostly the first.

    `width` is that of the terminal, None without one.
    """
    from idumb.domain import refusals
    from idumb.views import refusal

    known = {**(details or {})}
    choices = refusals.complete(code, message, hint, known).get("choices", ())
    data = {
        "code": code,
        "message": message,
        "hint": hint,
        "is_command": isinstance(hint, Action),
        "details": {**known, "choices": choices},
        "findings": findings,
        "next": following,
    }
    return refusal.text(escaped(plain(data)), width)
