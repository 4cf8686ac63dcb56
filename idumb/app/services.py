"""The ports a use case works with, as `bootstrap` hands them over. References only; each is made when first used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from idumb.app import ports
from idumb.domain.policy import Policy
from idumb.domain.settings import Settings


class Services(Protocol):
    """The whole outside of a use case.

    `worktree` names the work tree among those of the repository; `version` is idumb's own. `adapters` are
    for looking at: what they would start, and under which version.
    """

    @property
    def root(self) -> str: ...
    @property
    def worktree(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def clock(self) -> ports.Clock: ...
    @property
    def history(self) -> ports.History: ...
    @property
    def trees(self) -> ports.Trees: ...
    @property
    def log(self) -> ports.EventLog: ...
    @property
    def log_files(self) -> ports.LogFiles: ...
    @property
    def runs(self) -> ports.RunIndex: ...
    @property
    def owner(self) -> ports.Ownership: ...
    @property
    def consent(self) -> ports.ConsentStore: ...
    @property
    def memory(self) -> ports.Memory: ...
    @property
    def signatures(self) -> ports.Signatures: ...
    @property
    def files(self) -> ports.Files: ...
    @property
    def adapters(self) -> ports.Agents: ...
    @property
    def surroundings(self) -> ports.Surroundings: ...
    @property
    def plans(self) -> ports.PlanFiles: ...
    @property
    def texts(self) -> ports.Texts: ...
    @property
    def reports(self) -> ports.Reports: ...
    @property
    def attic(self) -> ports.Attic: ...
    @property
    def documents(self) -> ports.Documents: ...
    @property
    def asker(self) -> ports.Asker: ...
    @property
    def reporter(self) -> ports.Reporter: ...
    @property
    def interrupts(self) -> ports.Interrupts: ...
    @property
    def symbols(self) -> ports.Symbols: ...
    @property
    def gates(self) -> Sequence[ports.Gate]: ...

    def present_settings(self) -> Settings:
        """The configuration as its file is now; `settings` are those that the command began with."""

    def setting_place(self, *keys: str) -> tuple[int, int]:
        """Line and column of a key of the configuration as its file is now, `bindings` and its name for one."""

    def present_policy(self) -> Policy: ...

    def open_workspace(self, kind: str, run: str) -> ports.Workspace: ...

    @property
    def clones(self) -> ports.Clones: ...

    def open_commits(self, workspace: ports.Workspace) -> ports.CommittingClone:
        """What builders commit in this workspace, which is a clone."""

    def open_copy(self) -> AbstractContextManager[str]:
        """A throw-away copy of the work tree with every file that is not ignored: its absolute path."""

    def open_agents(self, workspace: ports.Workspace, run: str, *, aside: bool = False) -> ports.Agents:
        """The agents of a run; what those of others kept is removed, unless they are asked `aside` of a run."""

    def open_checks(self, workspace: ports.Workspace, run: str) -> ports.Checks: ...


class Rehearsals(Protocol):
    """Throw-away copies of the work tree, for runs that must change nothing."""

    def open(self, also: Iterable[str]) -> AbstractContextManager[Services]:
        """The services of a copy with HEAD, branch and every file that is not ignored, removed at the end.

        `also` are ignored files that are wanted too. What is consented to meanwhile is not kept.
        """


def run_ref(services: Services, run: str, what: str) -> str:
    """The name under which something of a run is kept in the repository."""
    return f"refs/idumb/worktrees/{services.worktree}/runs/{run}/{what}"


def plans_ref(services: Services, run: str, version: int) -> str:
    """Where the plans' bytes of one version of a run's contract are kept."""
    return run_ref(services, run, "plans" if version == 1 else f"plans-{version}")


def attempt_ref(services: Services, run: str, task: str, attempt: int, what: str = "") -> str:
    """The name of one thing of an attempt, or of the folder of them all."""
    return run_ref(services, run, f"{task}/{attempt}/{what}".removesuffix("/"))


def kept_at(snapshot: str, path: str) -> str:
    """What git calls the bytes of a path that a snapshot, a commit or its ref, keeps."""
    return f"{snapshot}:worktree/{path}"


def role_ref(services: Services, operation: str, what: str) -> str:
    """The name under which something is kept of what a role was asked aside of a run."""
    return f"refs/idumb/worktrees/{services.worktree}/roles/{operation}/{what}"
