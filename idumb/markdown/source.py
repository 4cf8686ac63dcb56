"""The text of a plan as lines, and where an offset stands in it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


class Source:
    """Decoded text with its lines (without line ends) and the offset at which each begins.

    Lines end at LF or CRLF and nowhere else. `lines` count from 0; everything shown to a person counts from 1.
    A byte-order mark belongs to the text but to no line.
    """

    __slots__ = ("cuts", "hidden", "lines", "path", "starts", "text")

    def __init__(self, text: str, path: str) -> None:
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
