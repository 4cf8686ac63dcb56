"""Where tasks run: programs in a checkout of the repository, people in their own working tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from idumb.app.ports.repository import Trees


class Workspace(Protocol):
    """Where a task is built. `in_place` is the user's own working tree, where nobody but people may work."""

    in_place: bool

    @property
    def trees(self) -> Trees: ...

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
