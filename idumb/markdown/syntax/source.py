"""The text of a document as lines, with a mapping from offsets to lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from idumb.domain import whole_numbers
from idumb.domain.plans.plan import Span


class Source:
    """Decoded text with its lines (without line ends) and the offset of each.

    Lines end only at LF or CRLF. `lines` counts from 0; messages count from 1. A byte-order mark is part of the text
    but of no line. `others` are the other plans of the phase.
    """

    __slots__ = ("cuts", "free", "hidden", "lines", "others", "path", "starts", "text")

    def __init__(self, text: str, path: str, others: Sequence[bytes] = ()) -> None:
        self.text = text
        self.path = path
        raw = text.split("\n")
        self.starts = list(accumulate(map((1).__add__, map(len, raw)), initial=0))
        self.lines = [line.removesuffix("\r") for line in raw] if "\r" in text else raw
        if text.startswith("\ufeff"):
            self.lines[0] = self.lines[0][1:]
            self.starts[0] = 1
        self.hidden: set[int] = set()  # lines that contain only a comment
        self.cuts: dict[int, str] = {}  # lines without their inline comments
        self.others = others
        self.free: dict[str, str] = {}

    def line_of(self, offset: int) -> int:
        """Return the line of an offset, from 0."""
        return min(max(bisect_right(self.starts, offset) - 1, 0), len(self.lines) - 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both from 1."""
        line = self.line_of(offset)
        return line + 1, max(offset - self.starts[line], 0) + 1

    def end_of(self, line: int) -> int:
        """Return the offset after the last character of a line, before its line end."""
        return self.starts[line] + len(self.lines[line])

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, self.line_of(start) + 1)

    def part(self, first: int, last: int) -> tuple[str, Callable[[int], int]]:
        """Return lines with LF, comments left out, and the function from an index of that text to an offset."""
        lines = ["" if n in self.hidden else self.lines[n] for n in range(first, last)]
        bounds = list(accumulate((len(line) + 1 for line in lines), initial=0))
        # Called twice for each value of a plan: what follows the last line is its end.
        rows = [(bounds[n], self.starts[first + n], len(line)) for n, line in enumerate(lines)]
        rows = rows or [(0, self.starts[min(first, len(self.starts) - 1)], 0)]

        def place(index: int) -> int:
            n = bisect_right(bounds, index) - 1
            begin, start, length = rows[n] if n < len(rows) else rows[-1]
            return start + (min(length, index - begin))

        return "".join(f"{line}\n" for line in lines), place

    def free_id(self, prefix: str) -> str:
        """Return a task id that no plan of the phase uses or mentions."""
        if prefix not in self.free:
            id_pattern = re.compile(re.escape(prefix) + r"(\d+)", re.ASCII)
            texts = (self.text, *(data.decode("utf-8", "replace") for data in self.others))
            free = whole_numbers.next_free(number for text in texts for number in id_pattern.findall(text))
            self.free[prefix] = f"{prefix}{free:02d}"
        return self.free[prefix]
