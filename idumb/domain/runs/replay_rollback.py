"""Replay of rollback and undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from idumb.domain.runs import replay_task
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import HALTED, RunState
from idumb.domain.runs.task_state import COMPENSATED, EFFECT, AttemptState, TaskProgress, TaskState


def _intended(state: RunState, event: Event) -> None:
    state.restoring = event.payload


def _abandoned(state: RunState, _: Event) -> None:
    state.restoring = None


def _compensated(state: RunState, event: Event) -> None:
    """Record the files that compensation commands changed as work of the tasks that touched them."""
    state.update(event.task or "", effect=COMPENSATED)
    for task, tree in event.payload["left"].items():
        if task in state.tasks:
            state.update(task, work=replace(state.tasks[task].work, left=tree))


def _rolled_back(state: RunState, event: Event) -> None:
    """Reset the tasks after the checkpoint, and keep what they were for `undo`."""
    state.restoring = None
    tasks = [task for task in event.payload["tasks"] if task in state.tasks]
    _keep(state, event, tasks)
    for id in tasks:
        task = state.tasks[id]
        number = task.attempt.number
        state.tasks[id] = TaskState(
            id,
            task.digest,
            effect=EFFECT if task.effect == EFFECT else "",
            attempt=AttemptState(number),
            progress=TaskProgress(settled=number),
        )
        state.attempted.pop(id, None)
    state.verification = None
    state.failures_in_a_row = 0
    state.state = HALTED
    state.reason = f"rolled back to {event.payload['to']}"


def _undone(state: RunState, event: Event) -> None:
    """Restore what the undone operation removed, and keep the present for an undo of this undo."""
    state.restoring = None
    kept = state.operations.get(event.payload["undone"])
    if kept is None:
        return
    _keep(state, event, kept["tasks"])
    state.answers.update(kept["answers"])
    state.tasks.update(kept["tasks"])
    for task in kept["tasks"]:
        state.attempted.pop(task, None)
    state.attempted.update(kept["attempted"])
    state.attempted = dict(sorted(state.attempted.items(), key=lambda item: item[1]))
    state.verification = kept["verification"]
    state.state = kept["state"]
    state.reason = ""


def _keep(state: RunState, event: Event, tasks: Iterable[str]) -> None:
    """Keep these tasks and the answers about them under the operation that announced this, then drop the answers."""
    before = {task: state.tasks[task] for task in tasks}
    answers = replay_task.answers_about(state, before)
    operation = str(event.payload.get("operation", event.operation))  # another operation may have finished it
    state.operations[operation] = {
        "tasks": before,
        "answers": answers,
        "verification": state.verification,
        "state": state.state,
        "attempted": {task: seq for task, seq in state.attempted.items() if task in before},
    }
    replay_task.forget(state, answers)


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "rollback.intended": _intended,
    "rollback.abandoned": _abandoned,
    "rollback.compensated": _compensated,
    "rollback.completed": _rolled_back,
    "undo.completed": _undone,
}
