"""A finding: one error or doubt in a plan or the configuration, with its place and its fix. A row has its texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

ERROR = "error"
WARNING = "warning"
SILENT = "none"
BY_FIELD = "by field"
MOST = 100
"""Findings of one code that are listed."""


class Finding(Struct, frozen=True):
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
    fix: str = ""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Row(NamedTuple):
    """`fix` is suggested unless a known name is near to what was found.

    - `guided`, `strict`: the severity in each mode (error, warning or none).
    - `field`: where the finding is, unless it says otherwise.
    - `gate`: the gate that cannot hold if there is such a finding, or BY_FIELD.
    - `question`: that of the self-check which such a finding answers with no.
    """

    message: str
    fix: str = "write {accepted}"
    accepted: str = ""
    guided: str = ERROR
    strict: str = ERROR
    field: str = ""
    gate: str = ""
    question: str = ""

    def said(self, words: Mapping[str, object]) -> tuple[str, str]:
        """Return message and fix with these words; unknown ones are left out."""
        given = defaultdict[str, object](str, words)
        return self.message.format_map(given), self.fix.format_map(given)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.severity == ERROR)


def first_of_each(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first hundred findings of each code. The last of them says how many more there are."""
    by_code: dict[str, list[Finding]] = {}
    for finding in (listed := list(findings)):
        by_code.setdefault(finding.code, []).append(finding)
    shown = {id(finding): finding for found in by_code.values() for finding in found[:MOST]}
    for last, *others in (found[MOST - 1 :] for found in by_code.values() if len(found) > MOST):
        shown[id(last)] = replace(last, message=f"{last.message} (and {len(others):,} more of {last.code})")
    return tuple(shown[id(finding)] for finding in listed if id(finding) in shown)


def did_you_mean(word: str, candidates: Iterable[str], otherwise: str = "", form: str = "did you mean `{}`?") -> str:
    """Return the question whether the nearest known word was meant, or `otherwise` if none is near."""
    near = nearest(word, candidates)
    return form.format(near) if near else otherwise


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the known word that is most similar to `word`, or None if none is close."""
    return _nearest(word, tuple(candidates))


@lru_cache(maxsize=1024)
def _nearest(word: str, candidates: tuple[str, ...]) -> str | None:
    import difflib  # noqa: PLC0415 (only needed once something is wrong)

    folded = {k.casefold(): k for k in candidates}
    match = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.65)
    return folded[match[0]] if match else None
