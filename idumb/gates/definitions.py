"""The source text of each name that a file defines, to tell whether a definition changed.

In Python, the parser says where a definition ends. In other languages it ends before the next line that is not
indented deeper and does not close a bracket, which expects formatted source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from idumb.gates import symbols

Definitions = Mapping[str, tuple[str, ...]]

_CONTINUES = re.compile(r"[)}\]{]")


def of_file(path: str, data: bytes) -> Definitions | None:
    """Return the texts by name; None if the language is unknown or the file cannot be read."""
    places = symbols.places(path, data)
    if places is None:
        return None
    lines = data.decode("utf-8").split("\n")
    texts: dict[str, tuple[str, ...]] = {}
    for name, first, last in places:
        end = _end(lines, first) if last is None else last
        texts[name] = (*texts.get(name, ()), "\n".join(line.rstrip("\r") for line in lines[first:end]))
    return texts


def _end(lines: Sequence[str], first: int) -> int:
    """Return the line after the last one of a definition that begins on `first`; both count from 0."""
    depth, end = _indentation(lines[first]), first + 1
    for number, line in _following(lines, first):
        if line.strip():
            if _indentation(line) <= depth and not (_indentation(line) == depth and _CONTINUES.match(line.lstrip())):
                break
            end = number + 1
    return end


def _following(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    return ((number, lines[number]) for number in range(first + 1, len(lines)))


def _indentation(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
