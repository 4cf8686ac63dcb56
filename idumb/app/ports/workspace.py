"""Where tasks run: the user's working tree, or a private clone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from idumb.app.ports.repository import BuilderCommits, Conflict, Snapshot, Trees


class Workspace(Protocol):
    """Where tasks run: `here`, the user's work tree, or `clone`, a private copy that delivers path by path."""

    kind: str

    @property
    def trees(self) -> Trees: ...

    def deliver(self, base: str, candidate: str, paths: Sequence[str]) -> tuple[str, tuple[Conflict, ...]]:
        """Bring the candidate's paths into the user's tree, compare-and-swap.

        (tree id in the user's repository, conflicts). In `here` there is nothing to do.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AbandonedClone:
    """A clone that is there, made for a run."""

    run: str
    path: str


class Clones(Protocol):
    """The clones of this repository, whatever command made them."""

    def require_place(self) -> None:
        """Refusal `clones.unusable` where none can be made."""

    def place(self) -> str:
        """The folder that they are made in."""

    def abandoned(self) -> Sequence[AbandonedClone]:
        """Those that are there, also where older versions made them; some may be at work."""

    def keep(self, clone: AbandonedClone, ref: str, reason: str) -> Snapshot | None:
        """End what runs in it and keep its files under `ref`, and what was committed there beside it.

        None where nothing is in its place but a link or a file. Git's own folder in it is made anew.
        """

    def remove(self, clone: AbandonedClone) -> None: ...


class CommittingClone(Protocol):
    """The clone of a run whose builders commit: what they commit there is looked at, and brought home as objects.

    Nothing of the builder's git folder is used but its branch and its objects, and no hook of it runs. Refusal
    `git.clone-gone` where the folder of all clones was replaced.
    """

    @property
    def base(self) -> str | None:
        """The commit that it was made at; None for a history without commits."""

    def begin(self, commit: str | None) -> None:
        """Make the clone anew: files, index and branch as this commit is."""

    def take(self) -> BuilderCommits:
        """Put a git folder of idumb's own in place of the builder's, and read what was committed.

        To be called when the builder's processes have ended, before anything else is asked of the clone.
        """

    def uncommitted(self, offered: BuilderCommits, base: str, candidate: str) -> tuple[str, ...]:
        """Paths in which the last commit and the candidate differ, git's filters applied.

        What neither the commits nor the attempt changed since the task base is passed over.
        """

    def keep(self, offered: BuilderCommits, ref: str) -> str:
        """Bring the commits home, durable and named by `ref`; the clone stands at the last one.

        Why they cannot be, or nothing.
        """

    def drop(self) -> None:
        """Let go of what was committed: the clone stands at its base, with the files as they are."""
