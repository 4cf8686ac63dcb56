"""Titles and text blocks of plans in other formats."""

from __future__ import annotations

import re
import textwrap

LONGEST = 120
_PREFIX = re.compile(r"^(?:\*\*)?(?:Task|Step)\s+[\w.-]*\d[\w.-]*\s*(?:[:.)]|—|–|-)\s*", re.IGNORECASE)


def clean(text: str) -> str:
    """Return a title on one line, without `Task 1:` before it and bold around it."""
    words = " ".join(text.split())
    words = _PREFIX.sub("", words, count=1) or words
    return words.removeprefix("**").removesuffix("**").strip()


def short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def block(text: str) -> str:
    """Return a text without its common indentation and the blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():
        return (first.strip() + newline + textwrap.dedent(rest)).strip()
    return textwrap.dedent(rest).strip("\n").rstrip()
