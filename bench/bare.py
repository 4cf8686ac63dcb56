"""The engine alone: real contract, journal, SQLite, gates, documents and reports; without git and processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from idumb.app.core.services import Workspace
from idumb.app.ports import Agent, Agents, Snapshot
from idumb.composition.container import Container
from idumb.domain import outcome
from idumb.domain.agent import AgentRequest, AgentResult
from tests.support.memory_checks import MemoryChecks
from tests.support.memory_repository import MemoryHistory, MemoryRepository, MemoryTrees, StoredCommit


class UnchangedTrees(MemoryTrees):
    """A working tree in which nothing ever changes, so that nothing is looked at either."""

    def __init__(self, root: str, repository: MemoryRepository) -> None:
        super().__init__(repository)
        self.root = root
        self._tree = repository.store_tree({})

    def save(self, paths: Iterable[str]) -> str:
        return self.scan(paths)

    def scan(self, also: Iterable[str] = ()) -> str:
        return self._tree

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        return Snapshot(self._tree, tree, ref)

    def tree_at(self, snapshot: str) -> str:
        return self._tree

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        return source

    def omitted(self) -> Mapping[str, str]:
        return {}

    def release_displaced(self) -> tuple[str, ...]:
        return ()


class UnchangedHistory(MemoryHistory):
    """A history to which nothing is ever committed."""

    def fold(self, run: str) -> None:
        pass

    def unsupported(self) -> tuple[str, str] | None:
        return None

    def identity_problem(self) -> str | None:
        return None

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def added(self, paths: Sequence[str]) -> tuple[str, ...]:
        return ()

    def remove_stale_files(self, since: str | None) -> Sequence[str]:
        return ()


class UnchangedWorkspace:
    """A checkout in which nothing ever changes."""

    in_place = False

    def __init__(self, trees: Any) -> None:
        self.trees = trees

    def show(self, tree: str, head: str | None) -> Mapping[str, str]:
        return {}

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        return tree

    def messages(self, head: str | None) -> tuple[str, ...]:
        return ()

    def checked_out(self, tree: str, paths: Iterable[str], seen: object = ()) -> str:
        return tree

    def cleaned(self, path: str, data: bytes) -> str:
        return ""

    def begin(self, ref: str) -> None:
        pass

    def keep(self) -> None:
        pass

    def end(self) -> None:
        pass


class ImmediateBuilder:
    """A builder that completes at once, for every binding."""

    name = "willing"
    version = "1"
    continues = False

    def get(self, binding: str) -> Agent:
        return self

    def describe(self) -> Sequence[str]:
        return ()

    def forget(self) -> None:
        pass

    def run(self, request: AgentRequest) -> AgentResult:
        return AgentResult(outcome.COMPLETED)


class BareServices(Container):
    """The container of one run, without git and processes."""

    @cached_property
    def _memory(self) -> MemoryRepository:
        return MemoryRepository(trees=defaultdict(dict), commits=defaultdict(lambda: StoredCommit("", None, "")))

    @cached_property
    def trees(self) -> UnchangedTrees:  # type: ignore[override]
        return UnchangedTrees(self.root, self._memory)

    @cached_property
    def history(self) -> UnchangedHistory:  # type: ignore[override]
        return UnchangedHistory(self._memory)

    def open_checkout(self) -> UnchangedWorkspace:  # type: ignore[override]
        return UnchangedWorkspace(self.trees)

    def open_agents(self, workspace: Workspace, run: str, *, aside: bool = False) -> Agents:
        return ImmediateBuilder()

    def open_checks(self, workspace: Workspace, run: str, *, continued: bool = False) -> MemoryChecks:  # type: ignore[override]
        return MemoryChecks(self._memory)

    def close(self) -> None:
        pass
