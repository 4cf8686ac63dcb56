"""Text for people and prompts: quoted so that untrusted text stays a quotation, truncated, and listed."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_QUOTED = 60_000
"""The most characters of one text that an agent receives; a note marks the cut."""


def fence(text: str, least: int = 1) -> str:
    """Return more backticks than any run in `text`, at least `least`."""
    return "`" * max(least, max(map(len, re.findall("`+", text)), default=0) + 1)


def code(text: str) -> str:
    """Return a code span with more backticks than any run inside it."""
    mark, pad = fence(text), " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{mark}{pad}{text}{pad}{mark}"


def line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def fenced(text: str, info: str = "") -> str:
    """Return `text` in a fence that nothing in it can close; "" for blank text."""
    if not text.strip():
        return ""
    mark = fence(text, 3)
    return f"{mark}{info}\n{text.strip(chr(10))}\n{mark}"


def truncate(text: str, most: int = MOST_QUOTED) -> str:
    """Return the start of a text that is too long, with a line that marks the cut."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: {len(text) - most} characters more]"


def short(text: str, most: int = 120) -> str:
    """Return a text for one line of a message, or its start with `…`."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text on one line, without unprintable characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def folded(text: str) -> str:
    """Return the words of a text for comparison: in small letters, with one space between them."""
    return " ".join(text.split()).casefold()


def as_markdown(text: str) -> str:
    """Return multi-line text as Markdown that hides nothing: no comments, no unprintable characters."""
    plain = text.replace("\r\n", "\n").replace("\t", "    ")
    plain = "".join(c if c == "\n" or c.isprintable() else " " for c in plain)
    return plain.replace("<!--", "&lt;!--")


MOST_LISTED = 5


def listed(items: Iterable[str], most: int = MOST_LISTED, *, between: str = ", ") -> str:
    r"""Return `a, b, c and 4 more`, line breaks as `\n`."""
    names = [item.replace("\n", "\\n").replace("\r", "\\r") for item in items]
    rest = max(0, len(names) - most)
    return between.join(names[:most]) + (f" and {rest} more" if rest else "")
