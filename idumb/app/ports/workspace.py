"""Where tasks run: the user's working tree, or a private clone."""

from __future__ import annotations

from typing import Protocol

from idumb.app.ports.repository import Trees
from idumb.lazy_dataclass import dataclass


class Workspace(Protocol):
    """Where tasks run: `here`, the user's working tree, or `clone`, a private copy that delivers path by path."""

    kind: str

    @property
    def trees(self) -> Trees: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AbandonedClone:
    """An existing clone of a run."""

    run: str
    path: str
