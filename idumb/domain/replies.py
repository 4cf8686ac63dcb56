"""Read the reply of a model: its JSON answer, or the plans in it.

A reply can quote other texts, so two different answers are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from idumb.domain import outcome

_Place = tuple[int, int, dict[str, Any]]
"""Start and end of an object in the text, and its value."""

_OBJECT = re.compile(r"^[ \t\ufeff]*(?=\{)", re.MULTILINE)
_CLOSES = re.compile(r"[ \t\r]*$", re.MULTILINE)
_MOST_BROKEN = 1000

VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)
TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
VERDICT = {**TEXT, "enum": list(VERDICTS)}
"""JSON Schemas of parts of a reply."""


def object_of(*optional: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others; all but the `optional` are required.

    For a reply, Codex refuses a schema with optional or other properties.
    """
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def answer(text: str, key: str) -> dict[str, Any] | str:
    """Return the object with `key` that is on lines of its own in a reply, fenced or not.

    Else the reason why there is none.

    The same object twice is one answer. A value of `key` inside other text is not an answer, but if it differs from the
    answer, the reply is ambiguous.
    """
    try:
        objects = tuple(_objects(text))
    except (ValueError, RecursionError):
        return "the answer holds more broken or nested JSON than is read"
    candidates = [candidate for _, _, candidate in objects if key in candidate]
    if not candidates:
        return f"the answer holds no {key}"
    value = candidates[0][key]
    others = _mentioned(text, key, objects) - {value} if isinstance(value, str) else set()
    if others or any(candidate != candidates[0] for candidate in candidates):
        return f"it gives two different answers ({key}), and one may be a quotation"
    return candidates[0]


def _objects(text: str) -> Iterator[_Place]:
    """Yield each object on lines of its own. Raises ValueError or RecursionError if too much text fails to parse.

    A failed parse is not repeated over the same text, so time is linear. `JSONDecodeError` counts lines from the start,
    so each failure costs a scan of the text before it; the limit includes these scans.
    """
    decoder = json.JSONDecoder()
    at = broken = 0
    while opened := _OBJECT.search(text, at):
        start = opened.end()
        try:
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as problem:
            at = max(start + 1, text.rfind("\n", start, problem.pos) + 1)
            broken += 1
            if broken > _MOST_BROKEN:
                raise
            continue
        if _CLOSES.match(text, at):
            yield start, at, value


def _mentioned(text: str, key: str, objects: Sequence[_Place]) -> set[str]:
    """Return the values that `key` has outside these objects, as JSON text."""
    key_pattern = re.compile(rf'"{re.escape(key)}"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
    starts, ends = [start for start, _, _ in objects], [end for _, end, _ in objects]
    between = zip([0, *ends], [*starts, len(text)], strict=True)
    return {match[1] for start, end in between for match in key_pattern.finditer(text, start, end)}


_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_PLAIN = frozenset({"", "markdown", "md"})
_FRONTMATTER = re.compile(r"^---\n(?:(?!---$).*\n)*?type:[ \t]*[\"']?plan\b", re.MULTILINE)
_PLAN = re.compile(r"\A---\n(?!---\n)")


def plans_in(reply: str) -> tuple[str, ...]:
    """Return each distinct text that starts like a plan, ending with one newline; nothing if a fence is not closed.

    Unlike in CommonMark, a fence with an info string inside a fence of the same length opens a nested one, because
    models write them so.
    """
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n").strip("\n \t")
    if _PLAN.match(text + "\n"):
        return (text + "\n",)
    lines = text.split("\n")
    fences, whole = _fences(lines)
    blocks = ("\n".join(lines[start + 1 : end]).strip("\n") + "\n" for start, end, info in fences if info in _PLAIN)
    plans = tuple(dict.fromkeys(block for block in blocks if _PLAN.match(block)))
    return plans if plans or not whole else _bare(text, fences)


def fenced(text: str) -> Iterator[tuple[str, str]]:
    """Yield (word after the fence, body) of each outer block up to one that is never closed.

    Fences start in the first column: an indented one may be a line of a patch.
    """
    lines = text.split("\n")
    for start, end, info in _fences(["" if line.startswith(" ") else line for line in lines])[0]:
        yield info, "".join(f"{line}\n" for line in lines[start + 1 : end])


def _bare(text: str, fences: list[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return a plan without a fence, from its first line to the end of the answer."""
    for start in _FRONTMATTER.finditer(text):
        line = text.count("\n", 0, start.start())
        if not any(begin <= line <= end for begin, end, _ in fences):
            return (text[start.start() :] + "\n",)
    return ()


def _fences(lines: list[str]) -> tuple[list[tuple[int, int, str]], bool]:
    """Return the outer fences, as (line, last line, info), up to one that is never closed, and whether all are."""
    outer: list[tuple[int, int, str]] = []
    opened: list[tuple[int, str, str]] = []
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None or (opened and not fence["mark"].startswith(opened[0][1])):
            continue
        info = fence["info"].strip().casefold()
        if info or not opened:
            opened.append((number, fence["mark"], info))
            continue
        start, _, said = opened.pop()
        outer += [] if opened else [(start, number, said)]
    return outer, not opened
