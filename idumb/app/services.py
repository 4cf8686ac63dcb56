"""The ports a use case works with, handed over by `bootstrap`. A bundle of references, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from idumb.app import ports
from idumb.domain.settings import Settings


@dataclass(frozen=True)
class Services:
    """`worktree` names the work tree among those of the repository; `version` is idumb's own."""

    root: str
    worktree: str
    version: str
    settings: Settings
    tools: Mapping[str, str]
    clock: ports.Clock
    history: ports.History
    trees: ports.Trees
    log: ports.EventLog
    runs: ports.RunIndex
    owner: ports.Ownership
    consent: ports.ConsentStore
    plans: ports.PlanFiles
    reports: ports.Reports
    documents: ports.Documents
    asker: ports.Asker
    reporter: ports.Reporter
    interrupts: ports.Interrupts
    gates: Sequence[ports.Gate]
    open_workspace: Callable[[str, str], ports.Workspace]
    open_agents: Callable[[ports.Workspace, str], ports.Agents]
    open_checks: Callable[[ports.Workspace, str], ports.Checks]

    @cached_property
    def ref_prefix(self) -> str:
        return f"refs/idumb/worktrees/{self.worktree}/"

    def attempt_ref(self, run: str, task: str, attempt: int, what: str) -> str:
        return f"{self.ref_prefix}runs/{run}/{task}/{attempt}/{what}"

    def run_ref(self, run: str, what: str) -> str:
        return f"{self.ref_prefix}runs/{run}/{what}"
