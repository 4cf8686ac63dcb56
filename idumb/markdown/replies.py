"""Finds a plan in what a model answered: the whole answer, or a fenced block among its words."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_PLAIN = frozenset({"", "markdown", "md"})
_FRONTMATTER = re.compile(r"^---\n(?:(?!---$).*\n)*?type:[ \t]*[\"']?plan\b", re.MULTILINE)
_OPENS = re.compile(r"\A---\n(?!---\n)")


def plans_in(reply: str) -> tuple[str, ...]:
    """Each different text that begins as a plan does, with one line end behind it; none where a fence is not closed.

    Inside a fence of the same length a fence with an info string opens another one, as models write them.
    """
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n").strip("\n \t")
    if _OPENS.match(text + "\n"):
        return (text + "\n",)
    blocks, whole = _blocks(text.split("\n"), _PLAIN)
    plans = tuple(dict.fromkeys(block + "\n" for block in blocks if _OPENS.match(block + "\n")))
    if plans or not whole:
        return plans
    bare = _FRONTMATTER.search(text)
    return (text[bare.start() :] + "\n",) if bare and not blocks else ()


def object_in(reply: str) -> dict[str, Any] | None:
    """The one JSON object of an answer: the whole answer, a fenced block, or its last line; None for anything else."""
    text = reply.removeprefix("\ufeff").strip()
    blocks, _ = _blocks(text.split("\n"), frozenset({"", "json"}))
    for one in (text, *reversed(blocks), text.rpartition("\n")[2]):
        try:
            found = json.loads(one)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None


def _blocks(lines: list[str], kinds: frozenset[str]) -> tuple[list[str], bool]:
    """What stands in outer fences of these kinds, without blank lines around it; whether every fence is closed."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        opened = _FENCE.fullmatch(lines[at])
        if opened is None:
            at += 1
            continue
        end = _end(lines, at + 1, opened["mark"])
        if end is None:
            return found, False
        if opened["info"].strip().casefold() in kinds:
            found.append("\n".join(lines[at + 1 : end]).strip("\n"))
        at = end + 1
    return found, True


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
