"""Scan a line of text: code spans, comments, comma lists, quotes and dashes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of the source, with its offset."""

    text: str
    at: int


_RUN = re.compile(r"`+")
_RUN_OR_COMMENT = re.compile(r"`+|<!--")
_CLOSING_QUOTE = re.compile(r"[\"'](?=[\s,\]});]|$)")
_QUOTED_OR_BRACE = re.compile(r"[\"'{}]")
_MASK = "\x00"
DASH = re.compile(r"—|–|(?<!-)--(?!-)(?=\s|$)|(?<=\s)-(?=\s)")
_SPACE = " \t\r\n"


def code_spans(text: str) -> list[tuple[int, int, int]]:
    """Return each code span as (start, end, number of backticks), as CommonMark defines them."""
    if "`" not in text:
        return []
    ticks = _Ticks(text)
    spans: list[tuple[int, int, int]] = []
    position = 0
    for run in ticks.runs:
        if run >= position and (span := ticks.span(run)) is not None:
            spans.append(span)
            position = span[1]
    return spans


class _Ticks:
    """The runs of backticks of a text."""

    __slots__ = ("_by_size", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs = {m.start(): m.end() - m.start() for m in _RUN.finditer(text)}
        self._by_size: dict[int, list[int]] = {}
        for at, size in self.runs.items():
            self._by_size.setdefault(size, []).append(at)

    def span(self, run: int) -> tuple[int, int, int] | None:
        """Return the code span that opens at `run`, or None if it is never closed."""
        escaped = _escaped(self.text, run)  # an escaped backtick is not part of the run
        at, size = run + escaped, self.runs[run] - escaped
        same = self._by_size.get(size, [])
        after = bisect_right(same, at + size - 1)
        return (at, same[after] + size, size) if size and after < len(same) else None


def _escaped(text: str, at: int) -> bool:
    slashes = 0
    while at > slashes and text[at - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1


def masked(text: str) -> str:
    """Return the text with each character of a code span masked."""
    spans = code_spans(text)
    if not spans:
        return text
    parts = []
    last = 0
    for start, end, _ in spans:
        parts += [text[last:start], _MASK * (end - start)]
        last = end
    return "".join([*parts, text[last:]])


def code(text: str) -> str | None:
    """Return the content of a text that is exactly one code span, otherwise None."""
    spans = code_spans(text)
    if len(spans) != 1 or spans[0][:2] != (0, len(text)):
        return None
    return span_content(text, spans[0])


def span_content(text: str, span: tuple[int, int, int]) -> str:
    """Return the content of a code span without one space on both sides, as in CommonMark."""
    start, end, size = span
    content = text[start + size : end - size]
    if len(content) > 1 and content[0] == " " == content[-1] and content.strip(" "):
        return content[1:-1]
    return content


def unquote(text: str) -> str:
    """Return the text without surrounding backticks or quotes."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text if (inner := code(text)) is None else inner


class Quotes:
    """The quoted parts of a text. A quote closes at an equal quote at the end of a word."""

    __slots__ = ("_closing",)

    def __init__(self, text: str) -> None:
        self._closing: dict[str, list[int]] = {'"': [], "'": []}
        for m in _CLOSING_QUOTE.finditer(text):
            self._closing[m[0]].append(m.start())

    def end(self, mark: str, at: int) -> int:
        """Return the index after the closing quote of the part that opens at `at`, or -1."""
        places = self._closing[mark]
        after = bisect_right(places, at)
        return places[after] + 1 if after < len(places) else -1


def split_commas(text: str) -> list[tuple[int, int]]:
    """Return the items of a comma list as ranges without surrounding spaces.

    Commas in code spans, braces, and quotes that open at the start of a word do not split.
    """
    blotted = masked(text)
    if _QUOTED_OR_BRACE.search(blotted):
        cuts = _commas_between(blotted)
    else:
        cuts = [m.start() for m in re.finditer(",", blotted)]
    edges = [-1, *cuts, len(text)]
    return [_trim(text, a + 1, b) for a, b in pairwise(edges)]


def _commas_between(text: str) -> list[int]:
    cuts: list[int] = []
    quotes = Quotes(text)
    depth = at = 0
    while at < len(text):
        c = text[at]
        if c in "\"'" and (at == 0 or text[at - 1] in " \t\n,[{("):
            at = max(quotes.end(c, at), at + 1)
            continue
        depth = max(depth + (c == "{") - (c == "}"), 0)
        if c == "," and not depth:
            cuts.append(at)
        at += 1
    return cuts


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in _SPACE:
        start += 1
    while end > start and text[end - 1] in _SPACE:
        end -= 1
    return start, end


def last_dash(text: str) -> re.Match[str] | None:
    """Return the last dash outside code spans: an em or en dash, `--`, or a hyphen between spaces."""
    last = None
    for last in DASH.finditer(masked(text)):  # noqa: B007 (the loop only looks for the last one)
        pass
    return last


def cut_comments(pieces: list[Piece]) -> tuple[list[list[tuple[int, int]]], int | None]:
    """Return the ranges of comments in each line, and the offset of a comment that does not end.

    Comments in code spans and code spans in comments do not count.
    """
    ranges: list[list[tuple[int, int]]] = [[] for _ in pieces]
    bases = list(accumulate((len(piece.text) + 1 for piece in pieces), initial=0))
    whole = "\n".join(piece.text for piece in pieces)
    ticks = _Ticks(whole)
    position = 0
    for m in _RUN_OR_COMMENT.finditer(whole):
        at = m.start()
        if at < position:
            continue
        if m[0] != "<!--":
            span = ticks.span(at)
            position = span[1] if span else m.end()
            continue
        line = bisect_right(bases, at) - 1
        end = whole.find("-->", at + 4, bases[line] + len(pieces[line].text))
        if end == -1:
            return ranges, pieces[line].at + at - bases[line]
        ranges[line].append((at - bases[line], end + 3 - bases[line]))
        position = end + 3
    return ranges, None


_FROM_START = ((0, 0),)


class Text:
    """A text that maps each character to its source offset: one joined from lines, or a part of the source."""

    __slots__ = ("literal", "marks", "value")

    def __init__(self, value: str, marks: Sequence[tuple[int, int]] = _FROM_START, *, literal: bool = False) -> None:
        self.value = value
        self.marks = marks  # (index in the value, offset in the source), ascending
        self.literal = literal  # a YAML list item: nothing in it splits

    def at(self, index: int) -> int:
        """Return the source offset of the character at `index`."""
        if len(self.marks) == 1:
            return self.marks[0][1] + index - self.marks[0][0]
        base, offset = self.marks[max(bisect_right(self.marks, (index, 1 << 62)) - 1, 0)]
        return offset + index - base

    def part(self, start: int, end: int | None = None) -> Text:
        """Return the range without surrounding spaces."""
        return self.range(*_trim(self.value, start, len(self.value) if end is None else end))

    def range(self, start: int, end: int) -> Text:
        within = self.marks[bisect_right(self.marks, (start, 1 << 62)) : bisect_left(self.marks, (end, -1))]
        marks = [(0, self.at(start)), *((index - start, offset) for index, offset in within)]
        return Text(self.value[start:end], marks, literal=self.literal)


def joined(pieces: list[Piece]) -> Text:
    """Join the lines of a paragraph with single spaces."""
    if len(pieces) == 1:
        return Text(pieces[0].text.rstrip(_SPACE), [(0, pieces[0].at)])
    marks = []
    parts: list[str] = []
    size = 0
    for text, offset in pieces:
        marks.append((size, offset))
        parts.append(text.strip(_SPACE))
        size += len(parts[-1]) + 1
    return Text(" ".join(parts), marks)
