"""The symbols of changed files: what a task added, removed and changed, compared with the symbols that it declares."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb.domain.plans import run_files
from idumb.domain.plans.plan import SymbolClaim
from idumb.lazy_dataclass import dataclass

ADDED = "added"
REMOVED = "removed"
CHANGED = "changed"
DECLARED = "declared"
UNDECLARED = "undeclared"
MISSING = "missing"
NOT_JUDGED = "not judged"
RECORDED = "recorded"
HOLDING = frozenset({DECLARED, NOT_JUDGED, RECORDED})
"""The statuses that fail nothing."""

Definitions = Mapping[str, tuple[str, ...]]
"""The texts of what a file defines, by name; a name may be defined more than once."""

_MOST_RECORDED = 100
_MOST_SHOWN = 20
_VERB = {"add": ADDED, "remove": REMOVED}


@dataclass(frozen=True, slots=True)
class SymbolSet:
    """What a changed file defined before and defines after; None if that cannot be determined."""

    path: str
    before: Definitions | None
    after: Definitions | None

    @property
    def judged(self) -> bool:
        return self.before is not None and self.after is not None

    def names(self, actual: str) -> frozenset[str]:
        if self.before is None or self.after is None:
            return frozenset()
        if actual == CHANGED:
            return frozenset(name for name, text in self.after.items() if self.before.get(name, text) != text)
        first, second = (self.before, self.after) if actual == ADDED else (self.after, self.before)
        return frozenset(second.keys() - first.keys())


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
        return self.status in HOLDING

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


_Change = tuple[str, str, str]
"""A path, a name, and what happened to it."""


def as_texts(lines: Iterable[Line]) -> list[str]:
    """Return what happened to symbols, such as `added load in a.py`; of recorded ones, only the first."""
    happened = [line for line in lines if line.actual is not None]
    recorded = [line for line in happened if line.status == RECORDED]
    shown = [line for line in happened if line.status != RECORDED] + recorded[:_MOST_SHOWN]
    texts = [f"{line.actual} {line.name} in {line.path}" for line in shown]
    more = len(recorded) - _MOST_SHOWN
    return [*texts, f"and {more} more"] if more > 0 else texts


def compare(claims: Sequence[SymbolClaim] | None, sets: Sequence[SymbolSet]) -> tuple[Line, ...]:
    """Return a line for each name that was added, removed or changed, and for each declared one that was not.

    Without claims (None), names are only recorded. With claims, added and removed names must be declared. A new or
    removed class covers its members. Names that moved between files, private names, tests, and changed
    definitions are recorded, unless they are declared.
    """
    changed = sorted(
        (symbol_set.path, name, actual)
        for symbol_set in sets
        for actual in (ADDED, REMOVED)
        for name in symbol_set.names(actual)
    )
    lines: list[Line] = []
    taken: set[_Change] = set()
    unjudged = [symbol_set.path for symbol_set in sets if not symbol_set.judged]
    for claim in claims or ():
        fitting = [c for c in changed if c[2] == _VERB[claim.action] and means(claim.name, c[0], c[1])]
        declared = f"{claim.action} {claim.name}"
        lines += [Line(name, path, DECLARED, actual, declared) for path, name, actual in fitting]
        taken.update(fitting)
        if not fitting:
            lines.append(Line(claim.name, None, NOT_JUDGED if unjudged else MISSING, None, declared))
    lines += [Line("any", path, NOT_JUDGED, None, None) for path in unjudged]
    if claims is not None:
        index = _index(changed)
        extra = [c for c in changed if c not in taken and not _aside(c, index) and not _is_inner(c[0], c[1])]
        lines += [Line(name, path, UNDECLARED, actual, None) for path, name, actual in extra]
        taken.update(extra)
    replaced = ((each.path, name, CHANGED) for each in sets for name in each.names(CHANGED))
    return (*lines, *itertools.islice(_recorded(sorted([*changed, *replaced]), taken), _MOST_RECORDED))


def _recorded(changed: Sequence[_Change], taken: set[_Change]) -> Iterator[Line]:
    """Yield a line for each change that has none; of an owner and its members, one stands for the others.

    That is the owner if it is new or removed, and the members otherwise.
    """
    owners = {(path, name.rpartition(".")[0]) for path, name, _ in changed}
    happened = frozenset(changed)
    for path, name, actual in changed:
        by_owner = actual != CHANGED and (path, name.rpartition(".")[0], actual) in happened
        by_members = actual == CHANGED and (path, name) in owners
        if not by_owner and not by_members and (path, name, actual) not in taken:
            yield Line(name, path, RECORDED, actual, None)


def means(claim: str, path: str, name: str) -> bool:
    """Whether a claim means a name: `load`, `Config.load` and `config.Config.load` all match; `*` matches any part."""
    pattern = claim.removesuffix("()").replace("::", ".").replace("#", ".")
    plain = name.replace("::", ".")
    module = path.rpartition("/")[2].partition(".")[0]
    return any(fnmatch.fnmatchcase(form, pattern) for form in (plain, f"{module}.{plain}", plain.rpartition(".")[2]))


def _aside(change: _Change, index: Mapping[tuple[str, str], set[str]]) -> bool:
    path, name, actual = change
    if any(part.startswith("_") for part in name.split(".")):
        return True
    owner = name.rpartition(".")[0]
    other = REMOVED if actual == ADDED else ADDED
    moved = any(at != path for at in index.get((name, other), ()))
    return moved or (bool(owner) and path in index.get((owner, actual), ()))


def _is_inner(path: str, name: str) -> bool:
    """Return whether nobody else uses a name, because it is a test."""
    return name.rpartition(".")[2].lower().startswith("test") and run_files.is_test(path)


def _index(changed: Iterable[_Change]) -> Mapping[tuple[str, str], set[str]]:
    index: dict[tuple[str, str], set[str]] = {}
    for path, name, actual in changed:
        index.setdefault((name, actual), set()).add(path)
    return index
