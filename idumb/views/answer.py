"""Render the answer of a command: one JSON object for programs, or plain text for people, from the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from idumb.domain.action import Action, plain
from idumb.system import escaping
from idumb.views import forms, markup, phrases

Data = Mapping[str, Any]

SCHEMA = 1
_LINES, _COLUMNS = 24, 80
"""What fits on a screen; no refusal is longer."""
_BODY = """
evidence*   - {}
  tasks: {tasks:20}
  paths: {paths:20}
"""
_STEP, _COMMAND = "  ", "      "


def render(view: str, data: Data) -> str:
    """Return the text for people, ending with a newline unless empty. `data` is the `data` of the JSON answer.

    `view` is `module.name` of a form or a function in `idumb.views.answers`. Every text in the data is escaped here.
    """
    module, _, function = view.partition(".")
    if module == "status" and "phases" not in data:
        module = "run"  # the next task of one phase
    answers: Any = import_module(f"idumb.views.answers.{module}")
    if module == "status":  # its data has much more than its lines
        return phrases.text_of(escaping.show_line(line) for line in getattr(answers, function)(data))
    shown = plain(data) if view in _DOCUMENTS else escaped(data)
    form = getattr(answers, "FORMS", {}).get(function)
    lines: Sequence[str] | str = getattr(answers, function)(shown) if form is None else forms.fill(form, shown)
    return lines if isinstance(lines, str) else phrases.text_of([*lines, *phrases.commands(shown)])


_DOCUMENTS = frozenset({"look.bundle", "plan.graph", "set_up.help_page", "set_up.schema"})
"""Answers that are documents of idumb's own: they are printed as they are."""
_BLOCKS = frozenset({"prompt", "diff", "output", "feedback", "source", "shown", "keep", "put_back"})
_BLOCKS_OF = frozenset({"handoff.summary", "handoff.next_steps", "diagnosis.text", "reports.text", ".text"})
"""Keys of texts with several lines; all other texts are printed on one line."""


def escaped(value: Any, key: str = "", parent: str = "") -> Any:
    """Return data with control characters as escapes, and each text or action on one line unless it is a block."""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        if key == "evidence":
            return markup.hanging(value.strip())
        if key == "command":
            return escaping.show_command(value) if parent == "choices" else escaping.show_line(value)
        is_block = key in _BLOCKS or f"{parent}.{key}" in _BLOCKS_OF
        return markup.visible(value) if is_block else markup.one_line(value)
    if isinstance(value, Mapping):
        return {escaped(name): escaped(each, name, key) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [escaped(each, key, parent) for each in value]
    return escaping.show_command(str(value)) if isinstance(value, Action) else value


def json_object(
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

    return {**error, "details": refusals.details_of(error["code"], error["message"], error["hint"], error["details"])}


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
    """Return what happened, the evidence, and one block of advice that ends with a command, for standard error.

    `following` are the next commands of the answer, `hint` mostly the first. `width` is that of the terminal, None
    without one: then words do not wrap at it. Commands stay whole.
    """
    from idumb.domain import refusals

    known = {} if details is None or details.get("asked") else details  # a question has just shown them
    choices = refusals.details_of(code, message, hint, known).get("choices", ())
    choices = [row for row in choices if row["text"] != str(hint or "")]
    facts = {"message": message, "hint": hint, "details": {**known, "choices": choices}, "next": following}
    data = escaped({**facts, "code": code, "findings": findings, "is_command": isinstance(hint, Action)})
    columns = width or _COLUMNS
    head = [f"idumb: {phrases.clip(data['message'], columns * _LINES // 2)} [{data['code']}]"]
    found = [phrases.findings([row]) for row in data["findings"]]
    body = [line.split("\n") for line in forms.fill(_BODY, data["details"]) if line != f"{_STEP}- {data['message']}"]
    advice = [*_advice(data, width, with_consequences=True)]
    if _height([*head, *advice], columns) > _LINES:
        advice = [*_advice(data, width, with_consequences=False)]
    room = _LINES - _height([*head, *advice], columns)
    above = _fitting(found, room - bool(body), columns)
    below = _fitting(body, room - _height(above, columns), columns)
    lines = [*above, *head, *below, *advice]
    return phrases.text_of(lines if width is None else _wrapped(lines, width))


def _fitting(groups: Sequence[Sequence[str]], room: int, width: int) -> list[str]:
    """Return the lines of as many groups as fit into so many rows, then how many do not."""
    for shown in range(min(len(groups), _LINES), -1, -1):
        more = [f"{_STEP}and {len(groups) - shown} more (--json has all)"] if shown < len(groups) else []
        lines = [*(line for group in groups[:shown] for line in group), *more]
        if not shown or _height(lines, width) <= room:
            break
    return lines


def _height(lines: Sequence[str], width: int) -> int:
    """Return the rows that the lines take on a terminal, which breaks a long command itself."""
    return sum(max(1, -(-len(line) // width)) for line in _wrapped(lines, width))


def _wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines, no longer than the width; a command stays whole, to be pasted."""
    for line in lines:
        yield from (line,) if line.startswith(_COMMAND) else phrases.wrapped(line, width)


def _advice(data: Data, width: int | None, *, with_consequences: bool) -> Iterator[str]:
    """Yield what the user can do; each command once, the last line is one. A long command has a line of its own."""
    hint = data["hint"] or ""
    rows = data["details"].get("choices", ())
    choices = [row for row in rows if row["command"] in (None, hint) or row["command"] not in hint]
    choices.sort(key=lambda row: row["command"] is not None)  # so that the last line is a command
    commands = [choice["command"] for choice in choices if choice["command"] is not None]
    steps = dict.fromkeys([*([hint] if data["is_command"] else []), *data["next"]])
    if hint and hint not in (*commands, *steps):
        yield f"{_STEP}next: {hint}"
    for choice in choices:
        words = f"{choice['text']}; {choice['consequence']}" if with_consequences else choice["text"]
        yield f"{_STEP}{words}" + ":" * (choice["command"] is not None)
        yield from () if choice["command"] is None else (f"{_COMMAND}{choice['command']}",)
    for number, step in enumerate(step for step in steps if step not in commands):
        label = f"{_STEP}{'or' if number else 'next'}:"
        is_long = width is not None and len(f"{label} {step}") > width
        yield from (label, f"{_COMMAND}{step}") if is_long else (f"{label} {step}",)
    if data["code"] == "rollback.conflict":
        yield from (f"{_COMMAND}{line.strip()}" for line in phrases.resolving(data["details"]["files"]))
