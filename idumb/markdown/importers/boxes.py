"""Checklists in Markdown: items with boxes, outside code fences, with the place of each mark."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_BOX = re.compile(r"([ \t]*)[-*+][ \t]+\[([^\[\]])\][ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
PATH = re.compile(r"`([^`\s]+[./][^`\s]*)`|(?<![\w/@:.])((?:[\w.@-]+/)+[\w.@-]+\.\w+)(?![\w/])")
_DONE = frozenset("xX✓✔")


@dataclass(slots=True)
class Box:
    """An item with a box. `mark` is the offset of the character in its brackets; `below` are its further lines."""

    text: str
    indent: int
    done: bool
    mark: int
    line: int
    headings: tuple[str, ...]
    below: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checklist:
    """The boxes of a document, and its headings as (level, text, line)."""

    boxes: tuple[Box, ...]
    headings: tuple[tuple[int, str, int], ...]


# Recognizing a format reads the boxes, and so does the format.
@functools.lru_cache(maxsize=1)
def read(text: str, *, fences: bool = False) -> Checklist:
    """Return the boxes in order. `fences` reads boxes inside code fences too."""
    boxes: list[Box] = []
    headings: list[tuple[int, str, int]] = []
    open_headings: list[tuple[int, str]] = []
    fence, at, current = "", 0, None
    for number, line in enumerate(text.split("\n"), 1):
        may_fence = "``" in line or "~~" in line
        if current is None and not may_fence and "[" not in line and not line.startswith("#"):
            at += len(line) + 1
            continue
        bare = line.rstrip("\r")
        mark = _FENCE.match(bare) if may_fence else None
        fenced = bool(fence) or mark is not None
        if fence and mark and mark[1].startswith(fence) and not bare.strip().strip(fence[0]):
            fence = ""
        elif mark and not fence:
            fence = mark[1]
        box = _BOX.match(bare) if "[" in bare and (fences or not fenced) else None
        heading = _HEADING.match(bare) if not fenced and bare.startswith("#") else None
        if box:
            indent = len(box[1].expandtabs(4))
            names = tuple(name for _, name in open_headings)
            current = Box(box[3].strip(), indent, box[2] in _DONE, at + box.start(2), number, names)
            boxes.append(current)
        elif heading:
            level, name = len(heading[1]), heading[2].rstrip(" \t").rstrip("#").rstrip(" \t")
            open_headings = [(lv, above) for lv, above in open_headings if lv < level] + [(level, name)]
            headings.append((level, name, number))
            current = None
        elif current is not None:
            if bare.strip() and len(bare) - len(bare.lstrip()) <= current.indent and not fenced:
                current = None
            elif bare.strip() or current.below:
                current.below.append(bare)
        at += len(line) + 1
    return Checklist(tuple(boxes), tuple(headings))


def has_plain(text: str) -> bool:
    """Whether a text has a box that is empty or ticked with an x, perhaps outside an item."""
    return "[ ] " in text or "[x] " in text or "[X] " in text


def tick(text: str, marks: Iterable[int]) -> str:
    """Return the text with `x` in the boxes whose marks are given; nothing else changes."""
    chars = list(text)
    for mark in marks:
        chars[mark] = "x"
    return "".join(chars)


def paths_in(text: str) -> tuple[str, ...]:
    """Return what looks like paths of files in a text, in order."""
    if "`" not in text and "/" not in text:
        return ()
    found = ((match[1] or match[2]).rstrip(".,;:)") for match in PATH.finditer(text))
    return tuple(dict.fromkeys(path.removeprefix("./") for path in found if _is_file(path)))


def _is_file(path: str) -> bool:
    if path.startswith(("http", "/", "-", "@", "~")) or "://" in path or re.search(r"[(){}<>$=*|\\,]", path):
        return False
    return "/" in path.strip("/") or re.search(r"\w\.(?:[a-z]{1,5}\d?)$", path) is not None
