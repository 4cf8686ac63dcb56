"""Find plans in the answer of a model: the whole answer, or a fenced block in it."""

from __future__ import annotations

import re

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass

_FENCE = lazy_pattern.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_PLAIN = frozenset({"", "markdown", "md"})
_FRONTMATTER = lazy_pattern.compile(r"^---\n(?:(?!---$).*\n)*?type:[ \t]*[\"']?plan\b", re.MULTILINE)
_OPENS = lazy_pattern.compile(r"\A---\n(?!---\n)")


def plans_in(reply: str) -> tuple[str, ...]:
    """Return each distinct text that starts like a plan, ending with one newline; nothing if a fence is not closed.

    Unlike in CommonMark, a fence with an info string inside a fence of the same length opens a nested one, because
    models write them so.
    """
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n").strip("\n \t")
    if _OPENS.match(text + "\n"):
        return (text + "\n",)
    lines = text.split("\n")
    fences, whole = _fences(lines)
    blocks = (_within(lines, fence) + "\n" for fence in fences if fence.info in _PLAIN)
    plans = tuple(dict.fromkeys(block for block in blocks if _OPENS.match(block)))
    return plans if plans or not whole else _bare(text, fences)


def _bare(text: str, fences: list[_Fence]) -> tuple[str, ...]:
    """Return a plan without a fence, from its first line to the end of the answer."""
    for start in _FRONTMATTER.finditer(text):
        line = text.count("\n", 0, start.start())
        if not any(fence.start <= line <= fence.end for fence in fences):
            return (text[start.start() :] + "\n",)
    return ()


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fence by the lines of its marks, from 0."""

    start: int
    end: int
    info: str


def _within(lines: list[str], fence: _Fence) -> str:
    return "\n".join(lines[fence.start + 1 : fence.end]).strip("\n")


def _fences(lines: list[str]) -> tuple[list[_Fence], bool]:
    """Return the outer fences up to the first that is never closed, and whether all are closed."""
    outer: list[_Fence] = []
    at = 0
    while at < len(lines):
        opened = _FENCE.fullmatch(lines[at])
        if opened is None:
            at += 1
            continue
        end = _end(lines, at + 1, opened["mark"])
        if end is None:
            return outer, False
        outer.append(_Fence(at, end, opened["info"].strip().casefold()))
        at = end + 1
    return outer, True


def _end(lines: list[str], at: int, mark: str) -> int | None:
    depth = 0
    for number in range(at, len(lines)):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None or fence["mark"][0] != mark[0] or len(fence["mark"]) < len(mark):
            continue
        if fence["info"].strip():
            depth += 1
        elif depth == 0:
            return number
        else:
            depth -= 1
    return None
