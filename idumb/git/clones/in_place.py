"""The workspace `here`: tasks run in the user's own work tree, so there is nothing to deliver."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app.ports.repository import Conflict
from idumb.git.trees import GitTrees


class Here:
    kind = "here"

    def __init__(self, trees: GitTrees) -> None:
        self._trees = trees

    @property
    def trees(self) -> GitTrees:
        return self._trees

    def deliver(
        self,
        base: str,  # noqa: ARG002 - the port's signature
        candidate: str,
        paths: Sequence[str],  # noqa: ARG002
    ) -> tuple[str, tuple[Conflict, ...]]:
        return candidate, ()

    def close(self) -> None:
        self._trees.close()
