"""Inside a line of text: code spans, comments, comma lists, quotes and dashes."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

from idumb.markdown.nodes import Piece

_RUN = re.compile(r"`+")
_QUOTED_OR_BRACE = re.compile(r"[\"'{}]")
_MASK = "\x00"
DASH = re.compile(r"—|–|(?<!-)--(?!-)(?=\s|$)|(?<=\s)-(?=\s)")
_SPACE = " \t\r\n"


def code_spans(text: str) -> list[tuple[int, int, int]]:
    """Every code span as (start, end, number of backticks); as in CommonMark, a run closes at an equal run."""
    if "`" not in text:
        return []
    runs = [(m.start(), m.end() - m.start()) for m in _RUN.finditer(text)]
    by_size: dict[int, list[int]] = {}
    for at, size in runs:
        by_size.setdefault(size, []).append(at)
    spans: list[tuple[int, int, int]] = []
    position = 0
    for run, length in runs:
        if run < position:
            continue
        escaped = _escaped(text, run)  # an escaped backtick does not belong to the run it begins
        at, size = run + escaped, length - escaped
        if not size:
            continue
        same = by_size.get(size, [])
        after = bisect_right(same, at + size - 1)
        if after < len(same):
            position = same[after] + size
            spans.append((at, position, size))
    return spans


def _escaped(text: str, at: int) -> bool:
    slashes = at - len(text[:at].rstrip("\\"))
    return slashes % 2 == 1


def masked(text: str) -> str:
    """`text` with every code span blotted out, character for character."""
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
    """The content of a text that is one code span and nothing else, else None."""
    spans = code_spans(text)
    if len(spans) != 1 or spans[0][:2] != (0, len(text)):
        return None
    return span_content(text, spans[0])


def span_content(text: str, span: tuple[int, int, int]) -> str:
    """One blank on both sides is taken off, as in CommonMark, unless there is nothing else."""
    start, end, size = span
    content = text[start + size : end - size]
    if len(content) > 1 and content[0] == " " == content[-1] and content.strip(" "):
        return content[1:-1]
    return content


def unquote(text: str) -> str:
    """Backticks or quotes around the whole are taken off."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text if (inner := code(text)) is None else inner


def quote_end(text: str, at: int) -> int:
    """Where the quoted part that opens at `at` ends (behind the closing quote), or -1."""
    mark = text[at]
    end = text.find(mark, at + 1)
    while end != -1 and text[end + 1 : end + 2].strip(_SPACE + ",]});"):
        end = text.find(mark, end + 1)
    return end + 1 if end != -1 else -1


def split_commas(text: str) -> list[tuple[int, int]]:
    """The items of a comma list as ranges without surrounding blanks.

    Commas inside code spans, braces, and quotes that open at the start of a word do not split.
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
    depth = at = 0
    while at < len(text):
        c = text[at]
        if c in "\"'" and (at == 0 or text[at - 1] in " \t\n,[{("):
            at = max(quote_end(text, at), at + 1)
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
    """The last dash outside code spans: an em or en dash, `--`, or a hyphen between blanks."""
    last = None
    for last in DASH.finditer(masked(text)):  # noqa: B007 (the loop only looks for the last one)
        pass
    return last


def cut_comments(pieces: list[Piece]) -> tuple[list[list[tuple[int, int]]], int | None]:
    """For every line of a paragraph the ranges that are comments; and the offset of one that does not end.

    What stands in code spans is no comment, and what stands in comments is no code span.
    """
    ranges: list[list[tuple[int, int]]] = [[] for _ in pieces]
    bases: list[int] = []
    whole = ""
    for _, text in pieces:
        bases.append(len(whole))
        whole += text + "\n"
    position = 0
    while (at := whole.find("<!--", position)) != -1:
        inside = next((s for s in code_spans(whole[position:]) if s[0] + position < at < s[1] + position), None)
        if inside:
            position += inside[1]
            continue
        line = bisect_right(bases, at) - 1
        end = whole.find("-->", at + 4, bases[line] + len(pieces[line][1]))
        if end == -1:
            return ranges, pieces[line][0] + at - bases[line]
        ranges[line].append((at - bases[line], end + 3 - bases[line]))
        position = end + 3
    return ranges, None


class Text:
    """A text put together from source lines, which knows where each character comes from."""

    __slots__ = ("literal", "marks", "s")

    def __init__(self, s: str, marks: list[tuple[int, int]], *, literal: bool = False) -> None:
        self.s = s
        self.marks = marks  # (index in s, offset in the source), ascending
        self.literal = literal  # a YAML list item: nothing in it splits

    def at(self, index: int) -> int:
        """The source offset of the character at `index`."""
        if len(self.marks) == 1:
            return self.marks[0][1] + index - self.marks[0][0]
        base, offset = self.marks[max(bisect_right(self.marks, (index, 1 << 62)) - 1, 0)]
        return offset + index - base

    def part(self, start: int, end: int | None = None) -> Text:
        """The range without blanks around it."""
        start, end = _trim(self.s, start, len(self.s) if end is None else end)
        return Text(self.s[start:end], [(0, self.at(start)), *self._marks_within(start, end)], literal=self.literal)

    def _marks_within(self, start: int, end: int) -> list[tuple[int, int]]:
        return [(index - start, offset) for index, offset in self.marks if start < index < end]


def joined(pieces: list[Piece]) -> Text:
    """The lines of a paragraph as one line; wrapped lines are joined by one blank."""
    if len(pieces) == 1:
        return Text(pieces[0][1].rstrip(_SPACE), [(0, pieces[0][0])])
    marks = []
    parts: list[str] = []
    size = 0
    for offset, text in pieces:
        marks.append((size, offset))
        parts.append(text.strip(_SPACE))
        size += len(parts[-1]) + 1
    return Text(" ".join(parts), marks)
