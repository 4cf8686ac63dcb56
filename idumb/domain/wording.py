"""Text that somebody else wrote, put into a prompt or a file so that it stays a quotation."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_QUOTED = 60_000
"""Characters of one text that are handed to an agent; what is longer is cut, and the cut is told."""


def fenced(text: str, info: str = "") -> str:
    """`text` in a fence that nothing in it can close; "" for a text without a word."""
    if not text.strip():
        return ""
    mark = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{mark}{info}\n{text.strip(chr(10))}\n{mark}"


def truncate(text: str, most: int = MOST_QUOTED) -> str:
    """The beginning of a text that is too long, with a line that says so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: {len(text) - most} characters more]"


def one_line(text: str) -> str:
    """Words on one line, without characters that are no text."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def as_markdown(text: str) -> str:
    """A text of several lines as Markdown that hides nothing: no comment, no character that is no text."""
    plain = text.replace("\r\n", "\n").replace("\t", "    ")
    plain = "".join(c if c == "\n" or c.isprintable() else " " for c in plain)
    return plain.replace("<!--", "&lt;!--")


MOST_LISTED = 5


def listed(items: Iterable[str], most: int = MOST_LISTED, *, hidden: int = 0, between: str = ", ") -> str:
    """`a, b, c and 4 more`. `hidden` counts items that are not among `items` and stay unnamed."""
    found = list(items)
    rest = max(0, len(found) - most) + hidden
    return between.join(found[:most]) + (f" and {rest} more" if rest else "")
