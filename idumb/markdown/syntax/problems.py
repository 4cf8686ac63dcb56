"""Collect problems while a document is read, so that all are reported at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from idumb.domain import catalog, wording
from idumb.domain.finding import ERROR, MOST, Finding, first_of_each, nearest
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax.source import Source

_HABITS = frozenset({"task.ticked", "criterion.ticked", "criterion.no-box"})
_LINES = 10
_BELOW = 20  # lines to search for the next one with text
_TAB = re.compile(r" *\t")
_WORDS = 600  # characters of a message, which may quote the plan


class Problems:
    """Turns offsets into findings with line and column."""

    __slots__ = ("findings", "prefix", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.prefix = "T1-"  # of the ids of the plan's tasks
        self.findings: list[Finding] = []

    def report(
        self, code: str, at: int, found: str = "", near: Sequence[str] = (), *, field: str = "", **words: Any
    ) -> None:
        """Add a finding with the texts of the catalog; `near` are the accepted names, of which one may be meant.

        `accepted` and `fix` replace those of the catalog, `where` precedes the fix.
        """
        row = catalog.ROWS[code]
        accepted = str(words.get("accepted", ", ".join(near) or row.accepted))
        given = _Words(words | {"found": found, "field": field, "accepted": accepted}, self)
        known = nearest(found, near) if near and found and len(self.findings) < MOST else None
        message, usual = row.said(given)
        fix = str(words.get("fix", usual))
        fix = f"{words.get('where', '')}{f'did you mean `{known}`?' if known and known != found else fix}"
        accepted = accepted.replace("{free}", str(given["free"]) if "{free}" in accepted else "")
        accepted = accepted if row.guided == ERROR else ""
        path, (line, column) = self.source.path, self.source.place(at)
        found, message = _short(found), _short(message, _WORDS)
        self.findings.append(Finding(code, row.guided, path, line, column, field, found, accepted, message, fix))

    @property
    def any_error(self) -> bool:
        return any(f.severity == ERROR for f in self.findings)

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings in source order. A habit of the author is reported once, with the other lines."""
        habits: dict[str, list[Finding]] = {}
        reported: list[Finding] = []
        for finding in sorted(self.findings, key=lambda f: (f.line, f.column, f.code)):
            (habits.setdefault(finding.code, []) if finding.code in _HABITS else reported).append(finding)
        reported += (_once(repeated) for repeated in habits.values())
        ordered = sorted(reported, key=lambda f: (f.line, f.column, f.code))
        return tuple(map(self._with_tab, first_of_each(ordered)))

    def _with_tab(self, finding: Finding) -> Finding:
        """Name a tab that may have caused an error: at its line, or at the next one with text."""
        lines, at = self.source.lines, finding.line - 1
        following = next((n for n in range(at + 1, min(at + _BELOW, len(lines))) if lines[n].strip()), at)
        tab = next((n for n in (at, following) if _TAB.match(lines[n])), None)
        if tab is None or finding.severity != ERROR:
            return finding
        where = "" if tab == at else f" of line {tab + 1}"
        return replace(finding, fix=f"replace the tab in the indentation{where} with spaces; otherwise {finding.fix}")


class _Words(catalog.Words):
    """The words of a finding; a free task id is only looked for when it is needed."""

    def __init__(self, words: dict[str, object], problems: Problems) -> None:
        super().__init__(words)
        self.problems = problems

    def __missing__(self, word: str) -> object:
        return self.problems.source.free_id(self.problems.prefix) if word == "free" else super().__missing__(word)


class Kind(NamedTuple):
    """A kind of document: what its codes begin with, and how its mappings are read.

    `dotted`: findings name the whole path of a key. `lenient`: a key without a value is as if it were absent.
    `own`: keys that begin with `x-` are the user's.
    """

    prefix: str
    dotted: bool = False
    lenient: bool = False
    own: bool = False


PLAN = Kind("plan")
CONFIG = Kind("config", dotted=True, lenient=True)
POLICY, SCRIPT = Kind("policy"), Kind("script")
STEP = Kind("step", lenient=True)
WORKFLOW = Kind("workflow", own=True)


@dataclass(slots=True)
class Place:
    """A named part of a document, for findings in it: where it starts, and its own key in a mapping.

    What its value may refer to: the phase, the declared ids by kind.
    """

    label: str
    problems: Problems
    at: int = 0
    phase: str | None = None
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kind: Kind = PLAN
    key: str = ""

    def inner(self, key: str, at: int) -> Place:
        """Return the place of a key in a mapping."""
        label = f"{self.label}.{key}" if self.kind.dotted and self.label else self.label
        return Place(label or key, self.problems, at, self.phase, self.declared, self.kind, key)

    @property
    def name(self) -> str:
        return (self.kind.dotted and self.label) or self.key or self.label

    def report(self, code: str, at: int, found: str = "", near: Sequence[str] = (), **words: Any) -> None:
        self.problems.report(code, at, found, near, field=self.label or self.key, **words)


def _once(repeated: list[Finding]) -> Finding:
    first, *others = repeated
    if not others:
        return first
    lines = wording.listed((str(other.line) for other in others), _LINES)
    return replace(first, message=f"{first.message} (also in line{'s' * (len(others) > 1)} {lines})")


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
