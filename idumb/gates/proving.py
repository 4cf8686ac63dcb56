"""What checks need of the working tree that shows a tree, and of the sandbox around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol


class Proving(Protocol):
    """A working tree of its own that holds exactly one tree.

    - `show` makes it hold a tree on top of a commit, and returns variables that a check needs.
    - `prepare` adds what `run` makes of the tree shown, unless it is there since an earlier time with this `identity`.
    - `renew`: the next `show` removes what earlier checks left, even if it shows the same tree. Until it is called
      again, nothing that a check of a `control` writes stays, not even in a cache.
    - `restore` puts back the files of the tree that a check changed, and returns their paths.
    - `provided`, `prepared`, `cached`: what it has besides the tree: the user's ignored paths, what `prepare` made, and
      what earlier checks left and the configuration keeps. `missing`: a sentence for each submodule without files.
    """

    @property
    def root(self) -> str: ...

    def show(self, tree: str, head: str | None) -> Mapping[str, str]: ...

    def prepare(self, identity: str, run: Callable[[], None]) -> None: ...

    def renew(self, *, control: bool = False) -> None: ...

    def restore(self) -> tuple[str, ...]: ...

    @property
    def provided(self) -> Sequence[str]: ...

    @property
    def prepared(self) -> Sequence[str]: ...

    @property
    def cached(self) -> Sequence[str]: ...

    @property
    def missing(self) -> Sequence[str]: ...


class Sandbox(Protocol):
    """Limits what a check writes and reaches."""

    def limited(self, root: str, variables: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Return the arguments before those of a check in `root`, and the level in words."""
