"""Refs of the user's that moved while an attempt was made: which, what may be lost by it, and what keeps that."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from idumb.app.bench import Bench
from idumb.app.services import attempt_ref
from idumb.domain.errors import Refusal

_OBJECT = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Moved:
    """A ref of the user's; None where it was not there."""

    name: str
    old: str | None
    new: str | None

    @property
    def words(self) -> str:
        return f"{self.name} ({short(self.old)} -> {short(self.new)})"

    @property
    def back(self) -> str:
        """The command that puts it back, and does nothing where it was moved again."""
        name = shlex.quote(self.name)
        if self.old is None:
            return f"git update-ref -d {name} {self.new}"
        if not _OBJECT.fullmatch(self.old):
            return f"git symbolic-ref {name} {shlex.quote(self.old)}"
        return f"git update-ref {name} {self.old}" + (f" {self.new}" if self.new else "")


def moved(bench: Bench, before: Mapping[str, str], after: Mapping[str, str]) -> list[Moved]:
    """Refs of the user's that are not as they were, but for the branch itself, of which HEAD tells."""
    if not before:
        return []  # nobody looked, or there was none
    branch = f"refs/heads/{bench.journal.state.branch}"
    names = sorted({name for name, _ in before.items() ^ after.items()} - {branch})
    return [Moved(name, before.get(name), after.get(name)) for name in names]


def is_loud(bench: Bench, one: Moved) -> bool:
    """Whether something may be lost by it.

    A new ref and a branch that went forward lose nothing: people and other runs make these in other work trees. What
    a fetch does to the refs of remotes is told, and what they named is kept.
    """
    if one.name.startswith("refs/remotes/"):
        return False
    if one.old is None:
        return one.name.startswith("refs/replace/")
    return not _went_forward(bench, one)


def _went_forward(bench: Bench, one: Moved) -> bool:
    if not one.name.startswith(("refs/heads/", "refs/remotes/")) or one.old is None or one.new is None:
        return False
    objects = _OBJECT.fullmatch(one.old) and _OBJECT.fullmatch(one.new)
    return bool(objects) and bench.services.history.descends(one.old, one.new)


def keep(bench: Bench, task: str, attempt: int, one: Moved) -> bool:
    """Hold what a ref named by a ref of ours, so that no garbage collection takes it; False where it is gone."""
    if one.old is None or not _OBJECT.fullmatch(one.old) or _went_forward(bench, one):
        return True
    return hold(bench, task, attempt, one.old)


def hold(bench: Bench, task: str, attempt: int, commit: str) -> bool:
    """The same for one commit."""
    ref = attempt_ref(bench.services, bench.run, task, attempt, f"meanwhile/{commit[:16]}")
    try:
        bench.services.history.keep_ref(ref, commit)
    except Refusal:
        return False
    return True


def short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value[:12] if _OBJECT.fullmatch(value) else value
