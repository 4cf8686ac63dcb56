"""Find the headings of a handwritten text, such as a roadmap. Fences contain no headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def levels(lines: Sequence[str]) -> dict[int, int]:
    """Return the heading levels by line (from 0). `lines` have no line ends."""
    by_line: dict[int, int] = {}
    mark = ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and not mark:
            mark = fence[1]
        elif fence and fence[1].startswith(mark) and not line.strip().strip(mark[0]):
            mark = ""
        elif not mark and (heading := _HEADING.match(line)):
            by_line[number] = len(heading[1])
    return by_line
