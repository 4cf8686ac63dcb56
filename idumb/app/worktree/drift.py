"""Is the repository unchanged? One comparison of two repository states, and what keeps or names what would be lost.

Three policies decide what follows: during an attempt and after a crash (`attempt/drift_check.py`), and around a role
(`worktree/tree_guard.py`). Nothing tells a builder's change from the user's own, so only idumb's refs are restored.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from idumb.app.core.services import kept_at
from idumb.app.ports.repository import History, RepositoryState
from idumb.domain import wording
from idumb.domain.errors import Refusal

_OBJECT = re.compile(r"[0-9a-f]{40,64}")
Descends = Callable[[str, str], bool]
"""Whether the second commit descends from the first."""


@dataclass(frozen=True, slots=True)
class MovedRef:
    """A ref that is not as it was; None where it did not exist. `forward`: it is a branch that only gained commits."""

    name: str
    old: str | None
    new: str | None
    forward: bool = False

    @property
    def may_lose(self) -> bool:
        """Return whether something may be lost by it.

        A new ref and a branch that moved forward lose nothing: people and runs in other working trees make these. A
        fetch moves refs of remotes.
        """
        if self.name.startswith("refs/remotes/"):
            return False
        if self.old is None:
            return self.name.startswith("refs/replace/")
        return not self.forward

    @property
    def words(self) -> str:
        return f"{self.name} ({short(self.old)} -> {short(self.new)})"

    @property
    def back(self) -> str:
        """Return the command that restores it, and that does nothing if it has moved again."""
        name = "--no-deref HEAD" if self.name == "HEAD" else shlex.quote(self.name)
        if self.old is None:
            return f"git update-ref -d {name} {self.new}"
        if not _OBJECT.fullmatch(self.old):
            return f"git symbolic-ref {shlex.quote(self.name)} {shlex.quote(self.old)}"
        return f"git update-ref {name} {self.old}" + (f" {self.new}" if self.new else "")


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs between two states of a repository.

    `guarded` are files that decide what git runs, `own_refs` those of idumb that moved or disappeared. `head` is HEAD
    itself, where it names another branch or, detached, another commit.
    """

    guarded: tuple[str, ...]
    refs: tuple[MovedRef, ...]
    own_refs: tuple[str, ...]
    head: MovedRef | None

    @property
    def loud(self) -> tuple[MovedRef, ...]:
        return tuple(ref for ref in self.refs if ref.may_lose)


def compare(before: RepositoryState, after: RepositoryState, descends: Descends, *, branch: str | None = None) -> Drift:
    """Return what differs between two states. `branch` is not among the refs, because HEAD tells about it.

    Refs are not compared where the earlier state has none, for it was not read then.
    """
    current = {f"refs/heads/{branch}"} if branch is not None else set()
    names = sorted({name for name, _ in before.refs.items() ^ after.refs.items()} - current) if before.refs else []
    old, new = (f"refs/heads/{h.branch}" if h.branch is not None else h.commit for h in (before.head, after.head))
    return Drift(
        changed_names(before.guarded, after.guarded),
        tuple(_moved(name, before.refs.get(name), after.refs.get(name), descends) for name in names),
        tuple(name for name, commit in sorted(before.kept.items()) if after.kept.get(name) != commit),
        None if old == new else MovedRef("HEAD", old, new),
    )


def changed_names(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names with another value, or only in one of two mappings."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _moved(name: str, old: str | None, new: str | None, descends: Descends) -> MovedRef:
    branch = name.startswith(("refs/heads/", "refs/remotes/")) and old is not None and new is not None
    commits = branch and _OBJECT.fullmatch(old or "") and _OBJECT.fullmatch(new or "")
    return MovedRef(name, old, new, forward=bool(commits) and descends(old or "", new or ""))


def keep_old(history: History, place: str, refs: Iterable[MovedRef]) -> list[MovedRef]:
    """Keep what moved refs named, so that git does not collect it. Return the refs whose objects are gone."""
    gone = []
    for ref in refs:
        if ref.old is None or not _OBJECT.fullmatch(ref.old) or ref.forward:
            continue
        if not keep(history, place, ref.old):
            gone.append(ref)
    return gone


def keep(history: History, place: str, commit: str) -> bool:
    """Keep a commit under `place`; return False if it is gone."""
    try:
        history.keep_ref(f"{place}/meanwhile/{commit[:16]}", commit)
    except Refusal:
        return False
    return True


def observe(history: History, before: RepositoryState, *, own_refs: bool = True) -> RepositoryState:
    """Return the present state, to compare with an earlier one. Reading idumb's own refs is slow if there are many."""
    kept = history.kept_refs() if own_refs and before.kept else before.kept
    return dataclasses.replace(history.state(), kept=kept)


def restore_own(history: History, before: RepositoryState, changed: Drift) -> list[str]:
    """Restore idumb's own refs that changed; return those whose commits are gone."""
    lost = []
    for name in changed.own_refs:
        try:
            history.keep_ref(name, before.kept[name])
        except Refusal:
            lost.append(name)
    return lost


def refs_words(moved: Iterable[MovedRef], gone: Iterable[MovedRef]) -> str:
    """Return `refs moved: …`, with what they named if that is gone."""
    lost = [ref.name for ref in gone]
    words = f"refs moved: {wording.listed(ref.words for ref in moved)}"
    return words + (f"; what they named is gone: {wording.listed(lost)}" if lost else "")


def show_command(snapshot: str, path: str) -> str:
    """Return the command that prints the bytes of a path as a snapshot, a commit or its ref, has them."""
    return f"git show {shlex.quote(kept_at(snapshot, path))}"


def nested_place(snapshot: str, path: str) -> str:
    """Return git's name for the saved bytes of a path in a nested repository."""
    return f"{snapshot}:repositories/{path}"


def short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value[:12] if _OBJECT.fullmatch(value) else value
