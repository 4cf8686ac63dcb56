"""Titles and text blocks of plans in other formats."""

from __future__ import annotations

import re

from idumb import lazy_pattern

LONGEST = 120
_PREFIX = lazy_pattern.compile(
    r"^(?:\*\*)?(?:Task|Step)\s+(?:[^\W\d]|[.-])*\d[\w.-]*\s*(?:[:.)]|—|–|-)\s*", re.IGNORECASE
)


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
        return (first.strip() + newline + dedent(rest)).strip()
    return dedent(rest).strip("\n").rstrip()


def dedent(text: str) -> str:
    """Return a text as `textwrap.dedent` does, in a third of the time."""
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    filled = [line for line in lines if line]
    first, last = (min(filled), max(filled)) if filled else ("", "")
    same = (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b or a not in " \t")
    margin = next(same, min(len(first), len(last)))
    return "\n".join([line[margin:] for line in lines] if margin else lines)
