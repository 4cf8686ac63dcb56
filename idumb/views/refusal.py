"""The text of a refusal or a failure: what happened, the evidence, and one block of advice that ends with a command."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.views import phrases

LINES, COLUMNS = 24, 80
"""What fits on a screen; no refusal is longer."""
_NAMED = 20  # tasks or paths
_STEP, _COMMAND = "  ", "      "


def text(data: Mapping[str, Any], width: int | None) -> str:
    """Return the text. `data` has `code`, `message`, `hint`, `details`, `findings`, and the `next` commands.

    Every text in it is escaped. Words wrap at the width of a terminal, not without one; commands stay whole.
    """
    columns = width or COLUMNS
    head, body = (
        [f"idumb: {data['message']} [{data['code']}]"],
        [line for line in _body(data["details"]) if line != f"{_STEP}- {data['message']}"],
    )
    advice = [*_advice(data, with_consequences=True)]
    if _height([*head, *advice], columns) > LINES:
        advice = [*_advice(data, with_consequences=False)]
    hidden = 0
    while body and _height([*head, *body, *advice], columns) + (hidden > 0) > LINES:
        body.pop()
        hidden += 1
    more = [f"  and {hidden} more (--json has all)"] if hidden else []
    findings = [line for item in data["findings"] for line in phrases.finding(item)]
    lines = [*head, *body, *more, *advice]
    return phrases.whole([*findings, *(lines if width is None else _wrapped(lines, width))])


def _height(lines: Sequence[str], width: int) -> int:
    return len([*_wrapped(lines, width)])


def _wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines, no longer than the width; a command stays whole, to be pasted."""
    for line in lines:
        if line.startswith(_COMMAND):
            yield line
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            yield from textwrap.wrap(
                line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )


def _body(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the evidence, and what the error names."""
    yield from (f"{_STEP}- {item}" for item in details.get("evidence", ()))
    for kind in ("tasks", "paths"):
        if details.get(kind):
            yield f"{_STEP}{kind}: {', '.join(list(details[kind])[:_NAMED])}"


def _advice(data: Mapping[str, Any], *, with_consequences: bool) -> Iterator[str]:
    """Yield what the user can do; each command once, the last line is one."""
    hint = data["hint"] or ""
    rows = [row for row in data["details"].get("choices", ()) if row["text"] != hint]
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
        yield f"{_STEP}{'or' if number else 'next'}: {step}"
    if data["code"] == "rollback.conflict":
        yield from (f"{_COMMAND}{line.strip()}" for line in phrases.resolving(data["details"]["files"]))
