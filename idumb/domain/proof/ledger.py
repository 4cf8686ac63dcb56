"""The ledger: declared files compared with changed files, computed from trees, never from an agent's words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from idumb.domain import paths
from idumb.domain.plans.plan import FileClaim
from idumb.domain.proof import symbols
from idumb.lazy_dataclass import dataclass

CREATED = "created"
MODIFIED = "modified"
DELETED = "deleted"

DECLARED = "declared"
UNDECLARED = "undeclared"
MISSING = "missing"
MISMATCH = "mismatch"
PROTECTED = "protected"

LINK = 0o120000
SUBMODULE = 0o160000

_EXPECTED = {
    "create": frozenset({CREATED}),
    "modify": frozenset({MODIFIED}),
    "delete": frozenset({DELETED}),
    "change": frozenset({CREATED, MODIFIED, DELETED}),
}
_DEMANDING = frozenset({"create", "modify", "delete"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a tree: git mode (0o100644, 0o100755, 0o120000, 0o160000) and object id in hex."""

    mode: int
    oid: str


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs between two trees."""

    path: str
    kind: str
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Line:
    """`actual` is what happened (None: nothing), `declared` what the task declares (None: nothing)."""

    path: str
    status: str
    actual: str | None
    declared: str | None
    rule: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "status": self.status, "actual": self.actual, "declared": self.declared}


@dataclasses.dataclass(frozen=True)  # noqa: TID251 - cached properties need no slots
class Ledger:
    """The files, and what changed in those whose language idumb can read."""

    lines: tuple[Line, ...]
    symbols: tuple[symbols.Line, ...] = ()

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
    def strays(self) -> tuple[str, ...]:
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
