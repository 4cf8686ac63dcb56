"""The engine alone: real contract, journal, SQLite, gates, documents and reports; without git and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from idumb.app.ports.agents import Agent, Agents
from idumb.app.ports.checks import Checks
from idumb.app.ports.repository import Conflict, Snapshot, Trees
from idumb.app.ports.workspace import Workspace
from idumb.composition.container import Container
from idumb.domain import outcome
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.plans.plan import Condition
from idumb.domain.proof.evidence import PASSED, Evidence
from idumb.domain.proof.ledger import Change, Entry

_TREE, _COMMIT = "1" * 40, "2" * 40


class UnchangedTrees:
    """A work tree in which nothing ever changes."""

    def __init__(self, root: str) -> None:
        self.root = root

    def scan(self, also: Iterable[str] = ()) -> str:
        return _TREE

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        return Snapshot(_COMMIT, _TREE, ref)

    def keep(self, ref: str, tree: str, reason: str, parent: str | None = None) -> Snapshot:
        return Snapshot(_COMMIT, tree, ref)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        return ()

    def entry(self, tree: str, path: str) -> Entry | None:
        return None

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        return tree

    def unignored(self, path: str) -> bool:
        return False

    def read(self, oid: str) -> bytes:
        return b""

    def store(self, data: bytes) -> str:
        return _TREE

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        return _COMMIT

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        return {}

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        return ()

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        return ""

    def line_counts(self, old: str, new: str) -> Mapping[str, tuple[int | None, int | None]]:
        return {}

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        return False, "nothing is applied here"


class UnchangedWorkspace:
    kind = "here"

    def __init__(self, root: str) -> None:
        self.trees: Trees = UnchangedTrees(root)

    def deliver(self, base: str, candidate: str, paths: Sequence[str]) -> tuple[str, tuple[Conflict, ...]]:
        return candidate, ()

    def close(self) -> None:
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

    def run(self, request: AgentRequest) -> AgentResult:
        return AgentResult(outcome.COMPLETED)


class PassingChecks:
    """Every command passes without being run."""

    def command(self, subject: str, text: str, command: str, *, timeout: float | None, tree: str | None) -> Evidence:
        return Evidence(subject, text, PASSED, command, ("/bin/sh", "-c", command), 0, tree=tree)

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence:
        return Evidence(subject, condition.subject, PASSED, tree=tree)

    def watch(self, programs: Iterable[str]) -> None:
        pass

    def end_processes(self) -> tuple[int, ...]:
        return ()


class BareServices(Container):
    """The container of one run, without git and processes."""

    @cached_property
    def trees(self) -> Trees:  # type: ignore[override]
        return UnchangedTrees(self.root)

    def open_workspace(self, kind: str, run: str) -> Workspace:
        return UnchangedWorkspace(self.root)

    def open_agents(self, workspace: Workspace, run: str) -> Agents:
        return ImmediateBuilder()

    def open_checks(self, workspace: Workspace, run: str, *, continued: bool = False) -> Checks:
        return PassingChecks()

    def close(self) -> None:
        pass
