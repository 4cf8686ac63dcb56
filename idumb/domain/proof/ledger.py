"""The ledger: declared files and symbols compared with what changed, computed from trees, never from agents' words."""

from __future__ import annotations

import fnmatch
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from idumb.domain import paths
from idumb.domain.plans import run_files
from idumb.domain.plans.plan import FileClaim, SymbolClaim

CREATED, MODIFIED, DELETED = "created", "modified", "deleted"
"""What happens to files."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
"""What happens to symbols."""

DECLARED = "declared"
UNDECLARED = "undeclared"
MISSING = "missing"
MISMATCH = "mismatch"
PROTECTED = "protected"
NOT_JUDGED = "not judged"
RECORDED = "recorded"
HOLDING = frozenset({DECLARED, NOT_JUDGED, RECORDED})
"""The statuses of symbols that fail nothing."""

LINK = 0o120000
SUBMODULE = 0o160000

_EXPECTED = {
    "create": frozenset({CREATED}),
    "modify": frozenset({MODIFIED}),
    "delete": frozenset({DELETED}),
    "change": frozenset({CREATED, MODIFIED, DELETED}),
}
_DEMANDING = frozenset({"create", "modify", "delete"})
_VERB = {"add": ADDED, "remove": REMOVED}
_MOST_RECORDED, _MOST_SHOWN = 100, 20

Definitions = Mapping[str, tuple[str, ...]]
"""The texts of what a file defines, by name; a name may be defined more than once."""


class Entry(Struct, frozen=True):
    """A file in a tree: git mode (0o100644, 0o100755, 0o120000, 0o160000) and object id in hex."""

    mode: int
    oid: str


class Change(Struct, frozen=True):
    """A path that differs between two trees."""

    path: str
    kind: str
    old: Entry | None
    new: Entry | None


class Line(Struct, frozen=True):
    """`actual` is what happened (None: nothing), `declared` what the task declares (None: nothing).

    `rule` is what protects the path, or where a file changed that did not change in the checkout.
    """

    path: str
    status: str
    actual: str | None
    declared: str | None
    rule: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "status": self.status, "actual": self.actual, "declared": self.declared}


class Ledger(Struct, frozen=True, dict=True):
    """The files, and what changed in those whose language idumb can read."""

    lines: tuple[Line, ...]
    symbols: tuple[SymbolLine, ...] = ()

    def paths(self, *statuses: str) -> tuple[str, ...]:
        return tuple(line.path for line in self.lines if line.status in statuses)

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Return the changed paths that idumb may restore or commit: those of the project."""
        return tuple(line.path for line in self.lines if line.actual is not None and line.rule != paths.OUTSIDE)

    @property
    def undeclared(self) -> tuple[str, ...]:
        return self.paths(UNDECLARED)

    @cached_property
    def deviations(self) -> tuple[str, ...]:
        """Return the changed paths that the task may not change."""
        return self.paths(UNDECLARED, PROTECTED)

    @cached_property
    def holds(self) -> bool:
        return all(line.status == DECLARED for line in self.lines) and all(line.holds for line in self.symbols)

    def as_list(self) -> list[dict[str, Any]]:
        """Return the rows of files, then of symbols, which also have a key `symbol`."""
        files = [line.as_dict() for line in self.lines]
        return [*files, *(line.as_dict() for line in self.symbols)]


def written_claims(files: Iterable[FileClaim]) -> tuple[FileClaim, ...]:
    """Return the claims that write; each `move` becomes a delete and a create."""
    out: list[FileClaim] = []
    for claim in files:
        if claim.verb == "move":
            out.append(FileClaim("delete", claim.path))
            out.append(FileClaim("create", claim.target or claim.path))
        elif claim.verb != "read":
            out.append(claim)
    return tuple(out)


def written_paths(files: Iterable[FileClaim] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(claim.path for claim in written_claims(files or ())))


def named_paths(files: Iterable[FileClaim] | None) -> tuple[str, ...]:
    """Return the written paths that can name a single file, which counts even if git ignores it.

    `pages/[id].tsx` is both a glob and a name; a name with a star is rare.
    """
    return tuple(path for path in written_paths(files) if "*" not in path and not path.endswith("/"))


def compare(
    files: Iterable[FileClaim] | None,
    changes: Sequence[Change],
    protected: Sequence[str] = (),
    accepted: Iterable[str] = (),
) -> Ledger:
    """Compare changes with declared files. `files` None declares nothing, so nothing may change.

    A pattern allows any number of changes. One that is only to be created needs a changed path that it matches; one
    with another verb too says where the task may work.
    `accepted` are paths that a person added to the task's scope.
    """
    claims = written_claims(files or ())
    literal = {claim.path: claim for claim in claims if not paths.has_wildcard(claim.path)}
    globs = [claim for claim in claims if paths.has_wildcard(claim.path)]
    allowed = frozenset(accepted)
    lines = [_line(change, literal, globs, protected, allowed) for change in changes]
    changed = {change.path for change in changes}
    optional = {claim.path for claim in globs if claim.verb != "create"}
    missing = [claim for claim in literal.values() if claim.verb in _DEMANDING and claim.path not in changed]
    missing += [g for g in globs if g.path not in optional and not any(paths.matches(p, g.path) for p in changed)]
    return Ledger((*lines, *(Line(claim.path, MISSING, None, claim.verb) for claim in missing)))


def _line(
    change: Change,
    literal: dict[str, FileClaim],
    globs: Sequence[FileClaim],
    protected: Sequence[str],
    accepted: frozenset[str],
) -> Line:
    rule = paths.protecting_rule(change.path, protected, literal)
    if rule is not None:
        return Line(change.path, PROTECTED, change.kind, None, rule)
    claim = literal.get(change.path)
    if claim is not None:
        status = DECLARED if change.kind in _EXPECTED[claim.verb] else MISMATCH
        return Line(change.path, DECLARED if change.path in accepted else status, change.kind, claim.verb)
    covering = [g for g in globs if paths.matches(change.path, g.path)]
    fitting = next((g for g in covering if change.kind in _EXPECTED[g.verb]), None)
    if fitting is not None:
        return Line(change.path, DECLARED, change.kind, f"{fitting.verb} {fitting.path}")
    if change.path in accepted:
        return Line(change.path, DECLARED, change.kind, "accepted by a person")
    if covering:
        return Line(change.path, MISMATCH, change.kind, f"{covering[0].verb} {covering[0].path}")
    return Line(change.path, UNDECLARED, change.kind, None)


class SymbolSet(Struct, frozen=True):
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


class SymbolLine(Struct, frozen=True):
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
        return Line(self.path or "", self.status, self.actual, self.declared).as_dict() | {"symbol": self.name}

    @property
    def words(self) -> str:
        where = f" in {self.path}" if self.path else ""
        if self.status == MISSING:
            return f"the symbol {self.name} was declared ({self.declared}), but nothing did that"
        return f"the symbol {self.name}{where} was {self.actual} and is not declared"


_SymbolChange = tuple[str, str, str]
"""A path, a name, and what happened to it."""


def symbol_texts(lines: Iterable[SymbolLine]) -> list[str]:
    """Return what happened to symbols, such as `added load in a.py`; of recorded ones, only the first."""
    happened = [line for line in lines if line.actual is not None]
    recorded = [line for line in happened if line.status == RECORDED]
    shown = [line for line in happened if line.status != RECORDED] + recorded[:_MOST_SHOWN]
    texts = [f"{line.actual} {line.name} in {line.path}" for line in shown]
    more = len(recorded) - _MOST_SHOWN
    return [*texts, f"and {more} more"] if more > 0 else texts


def compare_symbols(claims: Sequence[SymbolClaim] | None, sets: Sequence[SymbolSet]) -> tuple[SymbolLine, ...]:
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
    lines: list[SymbolLine] = []
    taken: set[_SymbolChange] = set()
    unjudged = [symbol_set.path for symbol_set in sets if not symbol_set.judged]
    for claim in claims or ():
        fitting = [c for c in changed if c[2] == _VERB[claim.action] and means_symbol(claim.name, c[0], c[1])]
        declared = f"{claim.action} {claim.name}"
        lines += [SymbolLine(name, path, DECLARED, actual, declared) for path, name, actual in fitting]
        taken.update(fitting)
        if not fitting:
            lines.append(SymbolLine(claim.name, None, NOT_JUDGED if unjudged else MISSING, None, declared))
    lines += [SymbolLine("any", path, NOT_JUDGED, None, None) for path in unjudged]
    if claims is not None:
        index = defaultdict[tuple[str, str], set[str]](set)
        for path, name, actual in changed:
            index[name, actual].add(path)
        extra = [c for c in changed if c not in taken and not _aside(c, index)]
        lines += [SymbolLine(name, path, UNDECLARED, actual, None) for path, name, actual in extra]
        taken.update(extra)
    replaced = ((each.path, name, CHANGED) for each in sets for name in each.names(CHANGED))
    return (*lines, *itertools.islice(_recorded(sorted([*changed, *replaced]), taken), _MOST_RECORDED))


def _recorded(changed: Sequence[_SymbolChange], taken: set[_SymbolChange]) -> Iterator[SymbolLine]:
    """Yield a line for each change that has none; of an owner and its members, one stands for the others.

    That is the owner if it is new or removed, and the members otherwise.
    """
    owners = {(path, name.rpartition(".")[0]) for path, name, _ in changed}
    happened = frozenset(changed)
    for path, name, actual in changed:
        by_owner = actual != CHANGED and (path, name.rpartition(".")[0], actual) in happened
        by_members = actual == CHANGED and (path, name) in owners
        if not by_owner and not by_members and (path, name, actual) not in taken:
            yield SymbolLine(name, path, RECORDED, actual, None)


def means_symbol(claim: str, path: str, name: str) -> bool:
    """Whether a claim means a name: `load`, `Config.load` and `config.Config.load` all match; `*` matches any part."""
    pattern = claim.removesuffix("()").replace("::", ".").replace("#", ".")
    plain = name.replace("::", ".")
    module = path.rpartition("/")[2].partition(".")[0]
    return any(fnmatch.fnmatchcase(form, pattern) for form in (plain, f"{module}.{plain}", plain.rpartition(".")[2]))


def _aside(change: _SymbolChange, index: Mapping[tuple[str, str], set[str]]) -> bool:
    """Return whether nobody else uses a name, or it moved, or its owner has a line."""
    path, name, actual = change
    is_test = name.rpartition(".")[2].lower().startswith("test") and run_files.is_test(path)
    if is_test or any(part.startswith("_") for part in name.split(".")):
        return True
    owner = name.rpartition(".")[0]
    other = REMOVED if actual == ADDED else ADDED
    moved = any(at != path for at in index.get((name, other), ()))
    return moved or (bool(owner) and path in index.get((owner, actual), ()))
