"""Edit a text by spans; every byte outside the spans stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain.errors import InputError
from idumb.domain.plans.plan import Span

Edit = tuple[Span, str]


def edit(text: str, edits: Sequence[Edit]) -> str:
    """Return `text` with each span replaced. Spans must be inside the text and not overlap.

    Insertions at the same offset keep their order. Raises InputError `edit.overlap` or `edit.outside`.
    """
    parts: list[str] = []
    position = 0
    for span, new in sorted(edits, key=lambda edit: (edit[0].start, edit[0].end)):
        if not 0 <= span.start <= span.end <= len(text):
            raise InputError("edit.outside", f"the span {span.start} to {span.end} is not inside the text")
        if span.start < position:
            raise InputError("edit.overlap", f"two edits overlap at character {span.start}, line {span.line}")
        parts += [text[position : span.start], new]
        position = span.end
    return "".join([*parts, text[position:]])


def insert_after(text: str, span: Span, new: str) -> str:
    """Return `text` with `new` inserted after `span`."""
    return edit(text, [(Span(span.end, span.end, span.line), with_line_ends(new, text))])


def with_line_ends(new: str, text: str) -> str:
    """Return `new` with CRLF if the text uses only CRLF."""
    crlf = text.count("\r\n")
    return new.replace("\n", "\r\n") if crlf and crlf == text.count("\n") else new
