"""The user's repository as data: HEAD, its state, snapshots, conflicts and commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """`commit` is None before the first commit; `branch` is None if HEAD is detached."""

    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """HEAD, and a digest of each file that decides what git runs (`guarded`).

    `configuration` has the settings of each file of git's configuration; it is never recorded.
    """

    head: Head
    guarded: Mapping[str, str]
    configuration: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A kept tree with the name `ref` and the id `commit`; `tree` is the tree of the working tree's files alone."""

    commit: str
    tree: str
    ref: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that idumb does not write, because its present bytes are not the expected ones."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """`commit` is None if git, a hook or the signer refused; `words` is their message.

    `tree` is that of the commit, or of what a hook has left that refused (`by_hook`). `unrun` are hooks in the tree
    that this run wrote: then no hook ran.
    """

    commit: str | None
    words: str = ""
    tree: str = ""
    by_hook: bool = False
    unrun: tuple[str, ...] = ()
