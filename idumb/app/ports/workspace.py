"""Where tasks run: the user's working tree, or a private clone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from idumb.app.ports.repository import Conflict, Trees
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
