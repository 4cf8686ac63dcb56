"""The ports a use case works with, as `idumb/composition/container.py` provides them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from idumb.app.ports.agents import Agents
from idumb.app.ports.checks import Checks, Gates
from idumb.app.ports.consent import ConsentStore, SavedAnswers, Signatures
from idumb.app.ports.event_log import EventLog, LogFiles, RunIndex
from idumb.app.ports.host import BackupStore, Clock, Files, Redaction, Sandboxes, Toolchain
from idumb.app.ports.ownership import Interrupts, Ownership
from idumb.app.ports.planning import Definitions, PlanFiles
from idumb.app.ports.reports import Documents, Reports
from idumb.app.ports.repository import History, Trees
from idumb.app.ports.ui import Asker, Reporter
from idumb.app.ports.workspace import Clones, CommittingClone, FreshClone, Workspace
from idumb.domain.settings import Policy, Settings


class Services(Protocol):
    """Every port that a use case needs.

    `root` is the absolute path of the project, `folder` the same from the top of the repository, "" there. `start` is
    the absolute path of the folder in which the command was started, for the commands that it prints. `worktree`
    identifies the project and its working tree in the repository; `version` is idumb's own. `adapters` only describe
    agents: what they would start, and in which version.
    """

    @property
    def root(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def start(self) -> str: ...
    @property
    def worktree(self) -> str: ...
    @property
    def inner_projects(self) -> tuple[str, ...]:
        """The folders below with a configuration of their own, relative to `root`. It starts git."""

    @property
    def version(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def history(self) -> History: ...
    @property
    def trees(self) -> Trees: ...
    @property
    def log(self) -> EventLog: ...
    @property
    def log_files(self) -> LogFiles: ...
    @property
    def runs(self) -> RunIndex: ...
    @property
    def owner(self) -> Ownership: ...
    @property
    def consent(self) -> ConsentStore: ...
    @property
    def saved_answers(self) -> SavedAnswers: ...
    @property
    def signatures(self) -> Signatures: ...
    @property
    def files(self) -> Files: ...
    @property
    def adapters(self) -> Agents: ...
    @property
    def toolchain(self) -> Toolchain: ...
    @property
    def sandboxes(self) -> Sandboxes: ...
    @property
    def redaction(self) -> Redaction: ...
    @property
    def plans(self) -> PlanFiles: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def backups(self) -> BackupStore: ...
    @property
    def documents(self) -> Documents: ...
    @property
    def asker(self) -> Asker: ...
    @property
    def reporter(self) -> Reporter: ...
    @property
    def interrupts(self) -> Interrupts: ...
    @property
    def gates(self) -> Gates: ...

    def present_settings(self) -> Settings:
        """The configuration file as it is now; `settings` are from the start of the command."""

    def setting_place(self, *keys: str) -> tuple[int, int]:
        """Line and column of a key in the present configuration file, such as `bindings` and a name."""

    def present_policy(self) -> Policy: ...

    def open_workspace(self, kind: str, run: str) -> Workspace: ...

    @property
    def clones(self) -> Clones: ...

    def open_commits(self, workspace: Workspace) -> CommittingClone:
        """The commits of builders in this workspace, which must be a clone."""

    def open_copy(self) -> AbstractContextManager[str]:
        """A temporary copy of all files that are not ignored; yields its absolute path."""

    def open_fresh_clone(self, work: Collection[str]) -> AbstractContextManager[tuple[FreshClone, Checks]]:
        """A temporary place for a clone outside the repository, and the checks that run in it.

        A check that changes a path of `work` fails.
        """

    def open_agents(self, workspace: Workspace, run: str, *, aside: bool = False) -> Agents:
        """The agents of a run. Unless they work `aside` of a run, homes of other runs are removed."""

    def open_checks(self, workspace: Workspace, run: str, *, continued: bool = False) -> Checks:
        """The checks of a run; `continued` if an attempt of it began in another process and has not ended."""


class Rehearsals(Protocol):
    """Temporary copies of the working tree, for dry runs."""

    def open(self, also: Iterable[str]) -> AbstractContextManager[Services]:
        """The services of a copy, which has HEAD, the branch, all files that are not ignored, and the ignored `also`.

        The copy is removed at the end, and consent given meanwhile is not recorded.
        """


def run_ref(services: Services, run: str, name: str, worktree: str | None = None) -> str:
    """Return a ref of a run, by default of one of this working tree."""
    return f"refs/idumb/worktrees/{worktree or services.worktree}/runs/{run}/{name}"


def plans_ref(services: Services, run: str, version: int, worktree: str | None = None) -> str:
    """Return the ref of the plans of one version of a run's contract."""
    return run_ref(services, run, "plans" if version == 1 else f"plans-{version}", worktree)


def attempt_ref(services: Services, run: str, task: str, attempt: int, name: str = "") -> str:
    """Return a ref of an attempt; without `name`, the prefix of all its refs."""
    return run_ref(services, run, f"{task}/{attempt}/{name}".removesuffix("/"))


def kept_at(services: Services, snapshot: str, path: str) -> str:
    """Return the git revision of a path in a snapshot, whose paths start at the top of the repository."""
    return f"{snapshot}:worktree/{from_top(services, path)}"


def from_top(services: Services, path: str) -> str:
    """Return a path of the project, or outside it, as a path from the top of the repository."""
    return posixpath.normpath(f"{services.folder}/{path}") if services.folder else path


def role_ref(services: Services, operation: str, name: str) -> str:
    """Return a ref of what a role did outside a run."""
    return f"refs/idumb/worktrees/{services.worktree}/roles/{operation}/{name}"
