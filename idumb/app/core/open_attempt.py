"""The attempt that is open in an editor: started, and neither submitted nor given up."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import RunState, TaskState
from idumb.domain.settings import Settings

KIND = "attempt.opened"

_ALLOWED = frozenset({"submit", "give-up", "stop", "doctor", "archive", "init"})
"""Commands that end the attempt, or change neither its files nor its plan."""


class OpenAttempt(Struct, frozen=True):
    """`since` is UTC, ISO 8601; `by` is the user who started it."""

    phase: str
    task: str
    attempt: int
    since: str
    by: str

    @property
    def words(self) -> str:
        return f"{self.task} has been open since {self.since} for {self.by}"

    def as_dict(self) -> dict[str, object]:
        return {"task": self.task, "phase": self.phase, "attempt": self.attempt, "since": self.since, "by": self.by}


def find(services: Services) -> OpenAttempt | None:
    """The open attempt of this working tree; there is at most one."""
    begun = services.log.events(kind=KIND, newest_first=True)
    last = next((event.run for event in begun if event.payload["worktree"] == services.worktree), None)
    return None if last is None else of(run_lookup.run_of(services, last))


def of(state: RunState) -> OpenAttempt | None:
    """The open attempt of a run."""
    task = state.opened
    if task is None or task.attempt.opened is None:
        return None
    return OpenAttempt(state.phase, task.id, task.attempt.number, task.attempt.opened["at"], task.attempt.opened["by"])


def refused_commit(contract: Contract, state: RunState, settings: Settings) -> str | None:
    """The task whose work in an editor passed but whose commit git refused. It can be submitted again."""
    refused = (t for t in contract.order if t in state.tasks and state.tasks[t].intended)
    return next((t for t in refused if contracts.in_editor(contract.plan_of[t], contract.tasks[t], settings)), None)


def choices(task: str) -> tuple[Choice, ...]:
    judged = "idumb validates the work and commits it if it passes"
    kept = "a snapshot keeps the task's files, and then they are restored"
    return (
        Choice("submit", "the task is done", judged, Action.of("submit", task)),
        Choice("give-up", "the task will not be finished", kept, actions.give_up(task)),
    )


def seconds_open(services: Services, task_state: TaskState) -> float:
    """Return how long the attempt has been open; 0 if it is not."""
    now = services.clock.now()
    since = (task_state.attempt.opened or {"at": now})["at"]
    return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds())


def refuse_command(services: Services, command: str) -> None:
    """Refusal `attempt.open` for a command that would change files while a task is open."""
    attempt = None if command in _ALLOWED else find(services)
    if attempt is None:
        return
    offered = choices(attempt.task)
    raise Refusal(
        "attempt.open",
        f"{attempt.words}. Until it is submitted or given up, no other command may change files.",
        hint=offered[0].command,
        details=actions.offer(
            f"Run idumb {command} while {attempt.task} is open", attempt.words, (), offered, open=attempt.as_dict()
        ),
    )


def require_open(state: RunState, task_id: str, *, committing: bool = False) -> TaskState:
    """Return the task if it has an open attempt or, with `committing`, its submit was killed during the commit."""
    run_lookup.require_task(state.tasks, task_id, state.phase, f"Run {state.id}")
    task_state = state.tasks[task_id]
    if task_state.attempt.opened is not None or (committing and task_state.intended):
        return task_state
    require_not_ended(task_id, task_state.status, state.phase)
    submitted = task_state.intended
    raise Refusal(
        "attempt.not-open",
        f"{task_id} {'is already submitted' if submitted else 'has no open attempt to submit or give up'}.",
        hint=Action.of("submit", task_id) if submitted else Action.of("next", state.phase),
        details={"task": task_id},
    )


def require_not_ended(task_id: str, status: str, phase: str) -> None:
    if status in outcome.ENDED:
        words = f"{task_id} is already {status}."
        raise Refusal("task.already-done", words, hint=Action.of("next", phase), details={"task": task_id})
