"""The attempt that is open in an editor: begun by `start`, and not yet submitted or given up."""

from __future__ import annotations

from dataclasses import dataclass

from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import Settings

KIND = "attempt.opened"

_WITH_IT = frozenset({"submit", "give-up", "pause", "cancel", "doctor", "archive", "init"})
"""Commands that change neither files nor plans of a task, or that end the attempt."""

_AFTER = "task."
_ENDS = frozenset({"attempt.started", "attempt.finished", "attempt.interrupted"})


@dataclass(frozen=True, slots=True)
class Opened:
    """`since` is UTC, ISO 8601; `by` is who said that they work on it."""

    run: str
    phase: str
    task: str
    attempt: int
    since: str
    by: str

    @property
    def words(self) -> str:
        return f"{self.task} is open since {self.since}, for {self.by}"

    def as_dict(self) -> dict[str, object]:
        return {"task": self.task, "phase": self.phase, "attempt": self.attempt, "since": self.since, "by": self.by}


def find(services: Services) -> Opened | None:
    """The open attempt of this work tree; there is one at most."""
    for event in services.log.events(kind=KIND, newest_first=True):
        if event.payload["worktree"] != services.worktree:
            continue
        later = services.log.events(run=event.run, task=event.task, after=event.seq)
        if any(e.kind in _ENDS or e.kind.startswith(_AFTER) for e in later):
            return None
        by, phase = str(event.payload["by"]), str(event.payload["phase"])
        return Opened(event.run or "", phase, event.task or "", event.attempt or 1, event.at, by)
    return None


def uncommitted(contract: Contract, state: RunState, settings: Settings) -> str | None:
    """The task built in an editor whose work holds and whose commit git refused: it is submitted once more."""
    held = (t for t in contract.order if t in state.tasks and state.tasks[t].intended is not None)
    return next((t for t in held if contracts.in_editor(contract.plan_of(t), contract.tasks[t], settings)), None)


def choices(task: str) -> tuple[Choice, ...]:
    return (
        Choice("submit", "it is done", "its work is judged, and committed if it holds", f"idumb submit {task}"),
        Choice(
            "give-up",
            "it is not to be finished",
            "what was changed of the task's files is kept in a snapshot and put back",
            f"idumb give-up {task} --why REASON",
        ),
    )


def refuse(services: Services, command: str) -> None:
    """Refusal `attempt.open` for whatever would change files under the hands of who works on a task."""
    found = None if command in _WITH_IT else find(services)
    if found is None:
        return
    ways = choices(found.task)
    raise Refusal(
        "attempt.open",
        f"{found.words}; until it is submitted or given up, nothing else may change the files.",
        hint=f"{ways[0].command}; or {ways[1].command}",
        details={
            "what": f"{command} while {found.task} is open",
            "why": found.words,
            "evidence": [],
            "choices": next_actions.rows(ways),
            "open": found.as_dict(),
        },
    )


def require(state: RunState, task_id: str) -> TaskState:
    """The task, where work on it can be submitted: an open attempt, or a submit that was killed while it committed."""
    known = state.tasks.get(task_id)
    if known is None:
        raise InputError(
            "task.unknown",
            f"Run {state.id} has no task {task_id}.",
            hint=f"idumb graph {state.phase}",
            details={"phase": state.phase},
        )
    if known.attempt.opened is not None or known.intended is not None:
        return known
    if known.status in outcome.DONE:
        raise Refusal(
            "task.already-done",
            f"{task_id} is {known.status} already.",
            hint=f"idumb next {state.phase}",
            details={"task": task_id},
        )
    raise Refusal(
        "attempt.not-open",
        f"No attempt at {task_id} is open, so there is nothing that could be submitted or given up.",
        hint=f"idumb start {task_id}",
        details={"task": task_id},
    )
