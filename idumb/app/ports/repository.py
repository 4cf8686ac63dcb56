"""The user's repository: snapshots and trees, history, index and refs; and where programs and people work in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.git.trees import GitTrees


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


class Workspace(Protocol):
    """Where a task is built. `in_place` is the user's own working tree, where nobody but people may work."""

    in_place: bool

    @property
    def trees(self) -> GitTrees: ...

    def show(self, tree: str, head: str | None) -> object:
        """Make the files those of `tree`, on top of the commit `head`. Ignored files stay.

        Only a checkout can do that: AssertionError in place.
        """

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        """Return the tree that was just shown, with those of these paths that are there although it lacks them."""

    def raw(self, tree: str, paths: Iterable[str], seen: Sequence[str] = ()) -> str:
        """Return `tree` with the bytes that these files have in the user's working tree.

        Those are what git checks out, or what the first of the trees `seen` has that git calls unmodified.
        """

    def cleaned(self, path: str, data: bytes) -> str:
        """Return the object that git stores for a file with these bytes."""

    def messages(self, head: str | None) -> tuple[str, ...]:
        """Return the messages of the commits that programs made there on top of `head`, the oldest first."""

    def begin(self, ref: str) -> None:
        """Note that an attempt works there. If nothing ends it, what it left is kept under the name `ref`."""

    def keep(self) -> None:
        """Keep what an attempt that was begun and not ended has left, under its name."""

    def end(self) -> None:
        """Note that nothing has to be kept: the next `show` removes what is there besides the tree."""
