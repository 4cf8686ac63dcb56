"""A finding: one thing wrong (or doubtful) in a plan or configuration, with its place and the mend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

ERROR = "error"
WARNING = "warning"

LATER = frozenset({"fence.unread", "field.no-task", "task.foreign-tag", "task.heading-without-id", "task.unread"})
"""Errors of a plan's format that earlier versions did not know: what was agreed to under them goes on under them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1, `path` is relative to the repository, `code` is stable."""

    code: str
    severity: str
    path: str
    line: int
    column: int
    field: str
    found: str
    accepted: str
    message: str
    mend: str = ""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def as_dict(self) -> dict[str, Any]:
        """By the names of the fields; a plan can have tens of thousands, and `dataclasses.asdict` takes its time."""
        return {name: getattr(self, name) for name in self.__slots__}


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.severity == ERROR)


def as_warnings_if_later(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same findings for a plan that was agreed to before there were some of these rules."""
    return tuple(replace(f, severity=WARNING) if f.code in LATER else f for f in findings)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None when none is close."""
    import difflib  # noqa: PLC0415 (only needed once something is wrong)

    folded = {k.casefold(): k for k in known}
    match = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[match[0]] if match else None
