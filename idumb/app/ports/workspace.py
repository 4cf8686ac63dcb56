"""Where tasks run: the user's working tree, or a private clone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from idumb.app.ports.repository import BuilderCommits, Conflict, Snapshot, Trees
from idumb.lazy_dataclass import dataclass


class Workspace(Protocol):
    """Where tasks run: `here`, the user's working tree, or `clone`, a private copy that delivers path by path."""

    kind: str

    @property
    def trees(self) -> Trees: ...

    def deliver(self, base: str, candidate: str, paths: Sequence[str]) -> tuple[str, tuple[Conflict, ...]]:
        """Compare and swap the candidate's paths into the user's working tree; nothing to do for `here`.

        Returns the tree id in the user's repository, and the conflicts.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AbandonedClone:
    """An existing clone of a run."""

    run: str
    path: str


class Clones(Protocol):
    """The clones of this repository, whichever command created them."""

    def require_place(self) -> None:
        """Refusal `clones.unusable` if no clone can be created."""

    def place(self) -> str:
        """The folder of the clones."""

    def abandoned(self) -> Sequence[AbandonedClone]:
        """The existing clones. Some may be in use."""

    def keep(self, clone: AbandonedClone, ref: str, reason: str) -> Snapshot | None:
        """Kill the processes in a clone, and keep its files under `ref` and its commits next to it.

        Returns None if the path is a link or a file. The clone's git folder is rebuilt.
        """

    def remove(self, clone: AbandonedClone) -> None: ...


class CommittingClone(Protocol):
    """The clone of a run whose builders commit. Their commits are examined and copied as objects.

    Only the branch and the objects of the builder's git folder are used, and none of its hooks run. Refusal
    `git.clone-gone` if the folder of all clones was replaced.
    """

    @property
    def base(self) -> str | None:
        """The commit that the clone starts from; None without commits."""

    def begin(self, commit: str | None) -> None:
        """Reset the clone's files, index and branch to this commit."""

    def take(self) -> BuilderCommits:
        """Replace the builder's git folder with idumb's own, and read the commits.

        Call it after the builder's processes ended and before any other method.
        """

    def uncommitted(self, commits: BuilderCommits, base: str, candidate: str) -> tuple[str, ...]:
        """Paths that differ between the last commit and the candidate, after git's filters.

        Paths that neither the commits nor the attempt changed since the task base are omitted.
        """

    def keep(self, commits: BuilderCommits, ref: str) -> str:
        """Copy the commits to the user's repository under `ref`, and move the clone to the last one.

        Returns why that is impossible, or "".
        """

    def drop(self) -> None:
        """Drop the commits: move the clone to its base, and keep the files."""


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """`missing` says why a fresh clone does not have what was asked for, or is empty; `notes` name what it lacks."""

    missing: str
    notes: tuple[str, ...] = ()


class FreshClone(Protocol):
    """A clone as a stranger would make it, outside the repository. It is used for one commit, then removed.

    Nothing of the user's repository changes.
    """

    @property
    def root(self) -> str: ...

    def check_out(self, commit: str) -> CheckedOut: ...

    def check_out_tree(self, snapshot: str, top: str, head: str | None, paths: Sequence[str]) -> CheckedOut:
        """Check out the commit `head` with these paths as in a hidden ref of the user's repository, at `top` in it.

        The result is what a commit of them would hold, after git's filters.
        """

    def stored(self, path: str, data: bytes) -> bool:
        """Return whether the commit has these bytes at this path, after git's filters."""

    def has(self, path: str) -> bool:
        """Return whether the commit has this path."""

    def ignored(self) -> tuple[str, ...]:
        """Return what git ignores in the user's working tree, which a clone does not have. Folders end with `/`."""
