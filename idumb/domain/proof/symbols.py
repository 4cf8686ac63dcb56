"""Declared symbols compared with defined symbols: names that a task's files define after it and not before."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.domain.plans.plan import SymbolClaim

ADDED = "added"
REMOVED = "removed"
DECLARED = "declared"
UNDECLARED = "undeclared"
MISSING = "missing"
NOT_JUDGED = "not judged"

_VERB = {"add": ADDED, "remove": REMOVED}


@dataclass(frozen=True, slots=True)
class SymbolSet:
    """The names that a changed file defined before and defines after; None if they cannot be determined."""

    path: str
    before: frozenset[str] | None
    after: frozenset[str] | None

    @property
    def judged(self) -> bool:
        return self.before is not None and self.after is not None

    def names(self, actual: str) -> frozenset[str]:
        before, after = self.before or frozenset(), self.after or frozenset()
        if not self.judged:
            return frozenset()
        return after - before if actual == ADDED else before - after


@dataclass(frozen=True, slots=True)
class Line:
    """One name. `path` is None for a declared name that no judged file has; `actual` None: nothing happened to it."""

    name: str
    path: str | None
    status: str
    actual: str | None
    declared: str | None

    @property
    def holds(self) -> bool:
        return self.status in (DECLARED, NOT_JUDGED)

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path or "",
            "symbol": self.name,
            "status": self.status,
            "actual": self.actual,
            "declared": self.declared,
        }

    @property
    def words(self) -> str:
        where = f" in {self.path}" if self.path else ""
        if self.status == MISSING:
            return f"the symbol {self.name} was declared ({self.declared}), but nothing did that"
        return f"the symbol {self.name}{where} was {self.actual} and is not declared"


def compare(claims: Sequence[SymbolClaim], sets: Sequence[SymbolSet]) -> tuple[Line, ...]:
    """Return a line for each added or removed name, and for each declared one that was not.

    A new or removed class covers its members. Names that moved between files, and names with a leading underscore, are
    ignored unless declared.
    """
    changed = [
        (symbol_set.path, name, actual)
        for symbol_set in sets
        for actual in (ADDED, REMOVED)
        for name in symbol_set.names(actual)
    ]
    lines: list[Line] = []
    taken: set[tuple[str, str, str]] = set()
    unjudged = [symbol_set.path for symbol_set in sets if not symbol_set.judged]
    for claim in claims:
        fitting = [c for c in sorted(changed) if c[2] == _VERB[claim.action] and _means(claim.name, c[0], c[1])]
        declared = f"{claim.action} {claim.name}"
        lines += [Line(name, path, DECLARED, actual, declared) for path, name, actual in fitting]
        taken.update(fitting)
        if not fitting:
            lines.append(Line(claim.name, None, NOT_JUDGED if unjudged else MISSING, None, declared))
    lines += [Line("any", path, NOT_JUDGED, None, None) for path in unjudged]
    extra = [c for c in sorted(changed) if c not in taken and not _aside(c, changed)]
    return (*lines, *(Line(name, path, UNDECLARED, actual, None) for path, name, actual in extra))


def _means(claim: str, path: str, name: str) -> bool:
    """Whether a claim means a name: `load`, `Config.load` and `config.Config.load` all match; `*` matches any part."""
    pattern = claim.removesuffix("()").replace("::", ".").replace("#", ".")
    plain = name.replace("::", ".")
    module = path.rpartition("/")[2].partition(".")[0]
    return any(fnmatch.fnmatchcase(form, pattern) for form in (plain, f"{module}.{plain}", plain.rpartition(".")[2]))


def _aside(change: tuple[str, str, str], changed: Iterable[tuple[str, str, str]]) -> bool:
    path, name, actual = change
    if any(part.startswith("_") for part in name.split(".")):
        return True
    owner = name.rpartition(".")[0]
    other = REMOVED if actual == ADDED else ADDED
    index = _index(changed)
    moved = any(at != path for at in index.get((name, other), ()))
    return moved or (bool(owner) and path in index.get((owner, actual), ()))


def _index(changed: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str], set[str]]:
    index: dict[tuple[str, str], set[str]] = {}
    for path, name, actual in changed:
        index.setdefault((name, actual), set()).add(path)
    return index
