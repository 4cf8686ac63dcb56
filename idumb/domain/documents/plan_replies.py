"""Find plans in the answer of a model: the whole answer, or a fenced block in it."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_PLAIN = frozenset({"", "markdown", "md"})
_FRONTMATTER = re.compile(r"^---\n(?:(?!---$).*\n)*?type:[ \t]*[\"']?plan\b", re.MULTILINE)
_OPENS = re.compile(r"\A---\n(?!---\n)")


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
    blocks = ("\n".join(lines[start + 1 : end]).strip("\n") + "\n" for start, end, info in fences if info in _PLAIN)
    plans = tuple(dict.fromkeys(block for block in blocks if _OPENS.match(block)))
    return plans if plans or not whole else _bare(text, fences)


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
