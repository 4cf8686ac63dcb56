"""Refs of the user's that moved while an attempt was made: which, what may be lost by it, and what keeps that."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from idumb.app.ports.repository import History, RepositoryState
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
        name = "--no-deref HEAD" if self.name == "HEAD" else shlex.quote(self.name)
        if self.old is None:
            return f"git update-ref -d {name} {self.new}"
        if not _OBJECT.fullmatch(self.old):
            return f"git symbolic-ref {shlex.quote(self.name)} {shlex.quote(self.old)}"
        return f"git update-ref {name} {self.old}" + (f" {self.new}" if self.new else "")


def moved(before: Mapping[str, str], after: Mapping[str, str], branch: str | None = None) -> list[Moved]:
    """Refs of the user's that are not as they were, but for a branch of which HEAD tells."""
    if not before:
        return []  # nobody looked, or there was none
    told = {f"refs/heads/{branch}"} if branch is not None else set()
    names = sorted({name for name, _ in before.items() ^ after.items()} - told)
    return [Moved(name, before.get(name), after.get(name)) for name in names]


def is_loud(history: History, one: Moved) -> bool:
    """Whether something may be lost by it.

    A new ref and a branch that went forward lose nothing: people and other runs make these in other work trees. What
    a fetch does to the refs of remotes is told, and what they named is kept.
    """
    if one.name.startswith("refs/remotes/"):
        return False
    if one.old is None:
        return one.name.startswith("refs/replace/")
    return not _went_forward(history, one)


def _went_forward(history: History, one: Moved) -> bool:
    if not one.name.startswith(("refs/heads/", "refs/remotes/")) or one.old is None or one.new is None:
        return False
    objects = _OBJECT.fullmatch(one.old) and _OBJECT.fullmatch(one.new)
    return bool(objects) and history.descends(one.old, one.new)


def keep(history: History, place: str, one: Moved) -> bool:
    """Hold what a ref named by a ref below `place`, so that no garbage collection takes it; False where it is gone."""
    if one.old is None or not _OBJECT.fullmatch(one.old) or _went_forward(history, one):
        return True
    return hold(history, place, one.old)


def hold(history: History, place: str, commit: str) -> bool:
    """The same for one commit."""
    try:
        history.keep_ref(f"{place}/meanwhile/{commit[:16]}", commit)
    except Refusal:
        return False
    return True


def own_again(history: History, before: RepositoryState) -> tuple[list[str], list[str]]:
    """Idumb's own refs that were deleted or moved, made again; and those whose commits are gone too."""
    present = history.kept_refs() if before.kept else {}
    changed = [name for name, commit in sorted(before.kept.items()) if present.get(name) != commit]
    lost = []
    for name in changed:
        try:
            history.keep_ref(name, before.kept[name])
        except Refusal:
            lost.append(name)
    return changed, lost


def short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value[:12] if _OBJECT.fullmatch(value) else value
