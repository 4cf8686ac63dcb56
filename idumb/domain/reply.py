"""Which JSON object of a reply is the answer. A reply may quote what others wrote, so two that differ are none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_Place = tuple[int, int, dict[str, Any]]
"""Where an object begins and ends, and what it is."""

_OPENS = re.compile(r"^[ \t\ufeff]*(?=\{)", re.MULTILINE)
_CLOSES = re.compile(r"[ \t\r]*$", re.MULTILINE)
_MOST_BROKEN = 1000


def answer(text: str, key: str) -> dict[str, Any] | str:
    """The object with `key` that stands in a reply on lines of its own, fenced or not; else, in words, why none does.

    What is said twice alike is one answer. A text that is given to `key` in the midst of other words is no answer, but
    is held against the one that is found: whose words either is cannot be known.
    """
    try:
        objects = tuple(_objects(text))
    except (ValueError, RecursionError):
        return "the answer holds more broken or nested JSON than is read"
    found = [one for _, _, one in objects if key in one]
    if not found:
        return f"the answer holds no {key}"
    said = found[0][key]
    others = _mentioned(text, key, objects) - {said} if isinstance(said, str) else set()
    if others or any(one != found[0] for one in found):
        return f"it gives two different answers ({key}), and one may be a quotation"
    return found[0]


def _objects(text: str) -> Iterator[_Place]:
    """Each object that has its lines for itself; ValueError or RecursionError where too much of the text is none.

    What was read of one that breaks off is not read again, so that the time grows with the text alone. Each such costs
    a look at all before it, for `JSONDecodeError` counts lines, and so they are counted too.
    """
    decoder = json.JSONDecoder()
    at = broken = 0
    while opened := _OPENS.search(text, at):
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
    """The texts that `key` is given, as JSON spells it, outside of these objects."""
    given = re.compile(rf'"{re.escape(key)}"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
    starts, ends = [start for start, _, _ in objects], [end for _, end, _ in objects]
    between = zip([0, *ends], [*starts, len(text)], strict=True)
    return {found[1] for start, end in between for found in given.finditer(text, start, end)}
