"""Checklists in Markdown: items with boxes, outside code fences, with the place of each mark."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import field

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass

_BOX = lazy_pattern.compile(r"([ \t]*)[-*+][ \t]+\[([^\[\]])\][ \t]+(\S.*)")
# The start of a line that may be a box, a fence or a heading.
_MARKED = lazy_pattern.compile(r"\n(?=[ \t]*(?:[-*+][ \t]+\[[^\[\]]\][ \t]|`{3}|~{3})|#{1,6}[ \t])")
FENCE = lazy_pattern.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = lazy_pattern.compile(r"(#{1,6})[ \t]+(.*)")
PATH = lazy_pattern.compile(r"`([^`\s]+[./][^`\s]*)`|(?<![\w/@:.~-])((?:[\w.@-]+/)+[\w.@-]+\.\w+)(?![\w/])")
# Endings of files; without one of them, a name without a folder may be a method such as `console.log`.
_USUAL = lazy_pattern.compile(
    r"\w\.(?:c|cc|cfg|[cm]?[jt]sx?|conf|cpp|cs|css|csv|dart|env|exs?|go|gradle|graphql|h|hpp|html|ini|ipynb|java|jpg|json[c5]?"
    r"|kts?|less|lock|lua|m|mdc?|mdx|php|pl|png|prisma|properties|proto|ps1|pyi?|r|rb|rs|rst|s[ac]ss|scala|sh|sol|sql"
    r"|sum|svelte|svg|swift|tf|toml|txt|vue|wasm|xml|ya?ml|zig)\Z"
)
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


def marked_lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str | None, str | None]]:
    """Yield the lines that begin as a pattern says, which begins with a line end, and what is between them.

    Each is (offset of the line, lines before it or None, line); the line is None at the end of the text.
    """
    at = 0
    for match in pattern.finditer("\n" + text):
        start = match.start()
        end = text.find("\n", start)
        yield start, text[at : start - 1] if at < start else None, text[start:] if end == -1 else text[start:end]
        at = len(text) + 1 if end == -1 else end + 1
    yield len(text), text[at:] if at <= len(text) else None, None


# Recognizing a format reads the boxes, and so does the format.
@functools.lru_cache(maxsize=1)
def read(text: str, *, fences: bool = False) -> Checklist:
    """Return the boxes in order. `fences` reads boxes inside code fences too."""
    boxes: list[Box] = []
    headings: list[tuple[int, str, int]] = []
    names: tuple[str, ...] = ()  # of the open headings, whose levels are `levels`
    levels: list[int] = []
    fence, at, number = "", 0, 0
    below: list[str] | None = None  # the lines below the last box, while they can be its own
    indent = 0
    for start, between, line in marked_lines(text, _MARKED):
        if below is not None and between is not None:
            below = _gathered(below, between, indent, fenced=bool(fence))
        if line is None:
            break
        number += text.count("\n", at, start) + 1
        at = start + len(line) + 1
        bare = line.rstrip("\r")
        mark = FENCE.match(bare)
        fenced = bool(fence) or mark is not None
        if fence and mark and mark[1].startswith(fence) and not bare.strip().strip(fence[0]):
            fence = ""
        elif mark and not fence:
            fence = mark[1]
        box = _BOX.match(bare) if fences or not fenced else None
        heading = _HEADING.match(bare) if not fenced else None
        if box:
            indent = len(box[1].expandtabs(4))
            row = Box(box[3].strip(), indent, box[2] in _DONE, start + box.start(2), number, names)
            boxes.append(row)
            below = row.below
        elif heading:
            level, name = len(heading[1]), heading[2].rstrip(" \t").rstrip("#").rstrip(" \t")
            kept = sum(1 for each in levels if each < level)
            names, levels = (*names[:kept], name), [*levels[:kept], level]
            headings.append((level, name, number))
            below = None
        elif below is not None:
            below = _gathered(below, bare, indent, fenced=fenced)
    return Checklist(tuple(boxes), tuple(headings))


def _gathered(below: list[str], text: str, indent: int, *, fenced: bool) -> list[str] | None:
    """Add lines to those of a box; None after a line that is not one of them."""
    for line in text.split("\n"):
        bare = line.rstrip("\r")
        if bare.strip() and len(bare) - len(bare.lstrip()) <= indent and not fenced:
            return None
        if below or bare.strip():
            below.append(bare)
    return below


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
    words = (word for word in text.split() if "/" in word or "`" in word)
    found = ((match[1] or match[2]).rstrip(".,;:)") for word in words for match in PATH.finditer(word))
    return tuple(dict.fromkeys(path.removeprefix("./") for path in found if _is_file(path)))


def _is_file(path: str) -> bool:
    if path.startswith(("http", "/", "-", "@", "~")) or "://" in path or re.search(r"[(){}<>$=*|\\,]", path):
        return False
    return "/" in path.strip("/") or _USUAL.search(path[-12:]) is not None
