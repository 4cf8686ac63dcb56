"""The text of a plan as lines, and where an offset stands in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from idumb.domain import whole_numbers


class Source:
    """Decoded text with its lines (without line ends) and the offset at which each begins.

    Lines end at LF or CRLF and nowhere else. `lines` count from 0; everything shown to a person counts from 1.
    A byte-order mark belongs to the text but to no line. `others` are the other plans of the phase.
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
        self.hidden: set[int] = set()  # lines that are nothing but a comment
        self.cuts: dict[int, str] = {}  # lines as they read without their inline comments
        self.others = others
        self.free: dict[str, str] = {}

    def line_of(self, offset: int) -> int:
        """The line, from 0, on which `offset` stands."""
        return min(max(bisect_right(self.starts, offset) - 1, 0), len(self.lines) - 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = self.line_of(offset)
        return line + 1, max(offset - self.starts[line], 0) + 1

    def end_of(self, line: int) -> int:
        """The offset behind the last character of `line`, before its line end."""
        return self.starts[line] + len(self.lines[line])

    def free_id(self, prefix: str) -> str:
        """A task id that nothing in the plans of the phase has or names, for a remedy to propose."""
        if prefix not in self.free:
            named = re.compile(re.escape(prefix) + r"(\d+)", re.ASCII)
            texts = (self.text, *(data.decode("utf-8", "replace") for data in self.others))
            free = whole_numbers.next_free(number for text in texts for number in named.findall(text))
            self.free[prefix] = f"{prefix}{free:02d}"
        return self.free[prefix]
