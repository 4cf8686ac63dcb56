"""What a run was asked to do, and what its attempts share: services, journal, workspace, what it is locked to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.core.attempt import Attempt, loaded
from idumb.app.core.journal import Journal
from idumb.app.core.services import Checks, Services, Trees, Workspace
from idumb.app.ports import Agents
from idumb.domain import contract, outcome, paths
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import STRICT, Plan, Task
from idumb.domain.runs.run import RunState

SAVING = frozenset({"attempt.opened", "attempt.finished", "checkpoint.intended"})
"""Kinds of events that hold the whole attempt, from where it can continue."""
INTERRUPTED_NAME = "interrupted"
"""The last part of the ref that keeps what an attempt left which did not end."""


class Locked(Struct):
    """What `run_lock` last found: `mark` identifies the files, programs and approvals that it compared.

    The approval expires at `until` and binds `bound_files`. `programs` are those that attempts start.
    """

    mark: str | None = None
    until: str = ""
    bound_files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class RunRequest(Struct, frozen=True):
    """What a person asks of a run, as flags of `command`; None means that the configuration decides.

    - `approve`: hashes of what he consents to. `approval`: a file with a signed approval.
    - `accept_git`, `accept_changed`: he accepts changed files of git's own, and a changed environment.
    - `dry_run`: the run is rehearsed in a copy. `in_place`: only a person works, in the user's own tree.
    """

    phase: str
    approve: tuple[str, ...] = ()
    mode: str | None = None
    max_attempts: int | None = None
    on_deviation: str | None = None
    verify: bool = True
    force: bool = False
    branch: str | None = None
    accept_git: tuple[str, ...] = ()
    approval: str | None = None
    deterministic: bool = False
    accept_changed: bool = False
    command: str = "execute-phase"
    dry_run: bool = False
    in_place: bool = False


class RunContext(Struct, frozen=True, dict=True):
    """What all attempts of a run share: ports, journal, workspace, and what the run is locked to.

    `workspace`: where its programs work. `noted`: what this command has told already.
    """

    services: Services
    journal: Journal
    contract: contract.Contract
    workspace: Workspace
    checks: Checks
    request: RunRequest
    locked: Locked = field(default_factory=Locked)
    noted: set[str] = field(default_factory=set)

    @property
    def state(self) -> RunState:
        return self.journal.state

    @cached_property
    def strict(self) -> bool:
        """A strict plan makes the whole run strict, and no amendment changes the mode."""
        return self.state.mode == STRICT

    @cached_property
    def work(self) -> Trees:
        """The trees of the workspace; `services.trees` are those of the user's working tree."""
        return self.workspace.trees

    @cached_property
    def agents(self) -> Agents:
        return self.services.open_agents(self.workspace, self.run)

    @cached_property
    def run(self) -> str:
        return self.state.id

    def tell_once(self, mark: str, words: str) -> None:
        """Tell the user something, unless this command has told it already."""
        if mark not in self.noted:
            self.noted.add(mark)
            self.services.reporter.note(words)

    def of(self, task: Task) -> RunContext:
        """Return the context of one task: people work in the user's own working tree."""
        return self._at(is_here=self.workspace.in_place or self._is_of_person(task))

    def continuing(self, task: Task) -> RunContext:
        """Return the context in which the last attempt at a task goes on: where it began, whatever the command is.

        A person may have taken a task of an agent, or begin another task while the work of an agent waits.
        """
        row = self.record(task)
        return self._at(is_here=self._is_of_person(task) if row is None else row.get("in_place", False))

    def _is_of_person(self, task: Task) -> bool:
        return contract.in_place(self.contract.plan_of[task.id], task, self.services.settings)

    def _at(self, *, is_here: bool) -> RunContext:
        if is_here == self.workspace.in_place:
            return self
        place = self.services.here if is_here else self.services.open_checkout()
        checks = self.services.open_checks(place, self.run).given(self.contract.variables)
        return replace(self, workspace=place, checks=checks)

    def saved(self, task: Task) -> Attempt:
        """Return the present attempt at a task as it was saved. KeyError if it was not."""
        row = self.record(task)
        if row is None:
            raise KeyError(task.id)
        return loaded(row, task, self.contract.plan_of[task.id], self.services.clock.monotonic())

    def record(self, task: Task) -> Mapping[str, Any] | None:
        """Return the record of the present attempt at a task; None if it never began, or was killed before."""
        events = self.services.log.events(run=self.run, task=task.id, newest_first=True)
        records = (event.payload["record"] for event in events if event.kind in SAVING and "record" in event.payload)
        row, number = next(records, None), self.state.tasks[task.id].attempt.number
        return row if row is not None and row["number"] == number else None

    def protected(self, plan: Plan) -> tuple[str, ...]:
        """Return the globs that no task of a plan may write, with everything in nested repositories."""
        repositories = self.services.trees.repositories()
        nested = paths.below_rules(repositories) if repositories else ()
        return (*plan.scope.protected, *self.services.settings.protected, *nested)


def opened(services: Services, journal: Journal, contract: Contract, request: RunRequest) -> RunContext:
    """Open what a run works with."""
    place = services.here if request.in_place else services.open_checkout()
    is_open = any(task_state.status == outcome.RUNNING for task_state in journal.state.tasks.values())
    checks = services.open_checks(place, journal.state.id, continued=is_open and not request.accept_changed)
    return RunContext(services, journal, contract, place, checks.given(contract.variables), request)
