"""What checks need of the working tree that shows a tree, and of the sandbox around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from idumb.app.ports.checks import Borrowed


class Proving(Protocol):
    """A working tree of its own that holds exactly one tree."""

    @property
    def root(self) -> str: ...

    def show(self, tree: str, head: str | None, lent: Sequence[str] = ()) -> Mapping[str, str]: ...

    def prepare(self, identity: str, run: Callable[[], None]) -> None: ...

    def renew(self) -> None: ...

    def restore(self) -> tuple[str, ...]: ...

    @property
    def borrowed(self) -> Borrowed: ...

    @property
    def unlike(self) -> Sequence[str]: ...

    @property
    def missing(self) -> Sequence[str]: ...

    @property
    def removed(self) -> Sequence[str]: ...

    @property
    def cached(self) -> Sequence[str]: ...

    def close(self) -> None: ...


class Sandbox(Protocol):
    """Limits what a check writes and reaches."""

    def limited(
        self, borrowed: Borrowed, root: str, variables: Mapping[str, str], *, apart: bool
    ) -> tuple[Borrowed, str]: ...
