"""What a type checker or linter reports, read from its output, and what of that is new.

It reads the usual forms: `PATH:LINE:COLUMN: TEXT` (mypy, pyright, go vet, cargo's and ruff's short form), `PATH(LINE,
COLUMN): TEXT` (tsc), a text followed by `--> PATH:LINE` (rustc, ruff), and a path followed by its lines (eslint).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Finding(NamedTuple):
    """`line` counts from 1. `words` are code and message without positions. `is_error`: it is not only a warning."""

    path: str
    line: int
    words: str
    is_error: bool = True


_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_AT_COLON = re.compile(r"(?:vet: )?([^\s:()][^:()]*):(\d+)(?::\d+)?(?::| -)\s+(\S.*)")
_AT_BRACKET = re.compile(r"([^\s:()][^:()]*)\((\d+)(?:,\d+)?\):\s+(\S.*)")
_ARROW = re.compile(r"\s*-->\s+([^:]+):(\d+)(?::\d+)?\s*$")
_HEADLINE = re.compile(r"(?:error|warning)(?:\[\w+\])?: \S.*|[A-Z]{1,4}\d{2,5} .*|invalid-syntax: .*")
_BELOW_PATH = re.compile(r"\s+(\d+):\d+\s+(error|warning)\s+(\S.*)")
_NO_PROBLEM = re.compile(r"(?:note|info|information|hint|help)\b", re.IGNORECASE)
_WARNING = re.compile(r"warning\b", re.IGNORECASE)
_POSITION = re.compile(r"\b(lines?|column) \d+|(?<=[\w\])]):\d+(?::\d+)?")
_STOPPED = re.compile(r"errors prevented further checking|could not compile `|^vet: ", re.MULTILINE)


def findings(output: str) -> tuple[Finding, ...]:
    """Return the errors that the output names, in its order; the warnings if it names no error."""
    found = tuple(_read(_COLOUR.sub("", output).splitlines()))
    return tuple(each for each in found if each.is_error) or found


def _read(lines: Sequence[str]) -> Iterator[Finding]:
    path = headline = ""
    for line in lines:
        bare = line.strip()
        if below := _BELOW_PATH.fullmatch(line.rstrip()):
            if path:
                yield _finding(path, below[1], f"{below[2]}: {below[3]}")
        elif arrow := _ARROW.fullmatch(line):
            if headline:
                yield _finding(arrow[1], arrow[2], headline)
            headline = ""
        elif at := _AT_BRACKET.fullmatch(bare) or _AT_COLON.fullmatch(bare):
            if not _NO_PROBLEM.match(at[3]):
                yield _finding(at[1], at[2], at[3])
        elif _HEADLINE.fullmatch(line):
            headline = line
        elif bare and line == line.lstrip():
            path = bare


def _finding(path: str, line: str, words: str) -> Finding:
    plain = " ".join(_POSITION.sub(lambda found: found[1] or "", words.replace(" [*]", "")).split())
    return Finding(path.strip().removeprefix("./"), int(line), plain, not _WARNING.match(words))


def new(before: Sequence[Finding], after: Sequence[Finding], moved: Mapping[str, str]) -> list[Finding]:
    """Return what `after` has more often than `before`, wherever in its file. `moved` has former paths by new path."""
    known = Counter((each.path, each.words) for each in before)
    fresh = []
    for each in after:
        key = (moved.get(each.path, each.path), each.words)
        if known[key]:
            known[key] -= 1
        else:
            fresh.append(each)
    return fresh


def stopped(output: str) -> bool:
    """Return whether the checker says that an error kept it from looking for others."""
    return _STOPPED.search(_COLOUR.sub("", output)) is not None
