"""Remove comments from lines of text."""

from __future__ import annotations

import re

from idumb.markdown.syntax.inline import cut_comments
from idumb.markdown.syntax.nodes import Paragraph
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source


def cut(paragraph: Paragraph, source: Source, problems: Problems) -> None:
    """Remove the comments from a paragraph or heading."""
    ranges, unclosed = cut_comments(paragraph.pieces)
    if unclosed is not None:
        message = "This comment starts inside a line and does not end on it"
        fix = "start the comment on a new line"
        accepted = "a comment on one line, or at the start of a line"
        problems.error("comment.inside-line", unclosed, message, found="<!--", accepted=accepted, fix=fix)
    for (offset, _), cuts in zip(paragraph.pieces, ranges, strict=True):
        if cuts:
            _cut_line(source, offset, cuts)
    paragraph.pieces[:] = [(o, _without(t, cuts)) for (o, t), cuts in zip(paragraph.pieces, ranges, strict=True)]


def _cut_line(source: Source, offset: int, cuts: list[tuple[int, int]]) -> None:
    n = source.line_of(offset)
    column = offset - source.starts[n]
    source.cuts[n] = _without(source.lines[n], [(a + column, b + column) for a, b in cuts])


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    for begin, end in reversed(cuts):
        text = text[:begin] + text[end:]
    return text


def check_end(rest: str, begin: int, problems: Problems) -> None:
    """Report text after a comment that starts its line; more comments are allowed."""
    if re.sub(r"<!--.*?-->", "", rest).strip(" \t"):
        message = "Text after a comment that starts a line is not rendered as Markdown"
        fix = "move the text to a new line"
        accepted = "nothing after the comment"
        problems.error("comment.text-after", begin, message, found=rest.strip(), accepted=accepted, fix=fix)
