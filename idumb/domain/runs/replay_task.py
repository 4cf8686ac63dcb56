"""Replay of the events that set the status of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from idumb.domain import outcome
from idumb.domain.runs import replay_decision
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import ANSWERED, ELSEWHERE, RunState
from idumb.domain.runs.task_state import Checkpoint, TaskState


def _task(state: RunState, event: Event) -> TaskState:
    return state.tasks[event.task or ""]


def _carried(state: RunState, event: Event) -> None:
    p, task = event.payload, _task(state, event)
    checkpoint = Checkpoint(**{**p["checkpoint"], "files": tuple(p["checkpoint"]["files"])})
    state.update(
        task.id,
        status=p["status"],
        checkpoint=checkpoint,
        carried_from=p["from_run"],
        reason=p.get("reason", ""),
        effect=p.get("effect", ""),
        work=replace(task.work, left=checkpoint.tree),
    )


def _becomes(status: str) -> Callable[[RunState, Event], None]:
    def handler(state: RunState, event: Event) -> None:
        task = _task(state, event)
        attempt = replace(task.attempt, running=False, opened=None)
        state.update(task.id, status=status, reason=event.payload.get("reason", ""), attempt=attempt)
        if status in outcome.DONE:
            state.failures_in_a_row = 0
        elif status == outcome.FAILED:
            state.failures_in_a_row += 1

    return handler


def _accepted(state: RunState, event: Event) -> None:
    """Keep the accepted files as the task's work, also if a person changed them by hand."""
    p, work = event.payload, _task(state, event).work
    _becomes(outcome.ACCEPTED)(state, event)
    touched = tuple(p.get("touched", work.touched))
    work = replace(work, left=p.get("left", work.left), touched=touched)
    state.update(event.task or "", accepted_commit=p.get("commit"), work=work)


def _waiting(state: RunState, event: Event) -> None:
    p, task = event.payload, _task(state, event)
    state.update(
        task.id,
        status=outcome.WAITING,
        reason=p.get("reason", ""),
        decisions=tuple(p.get("decisions", ())),
        attempt=replace(task.attempt, running=False),
    )


def _reset(state: RunState, event: Event) -> None:
    """Make a task pending again, and forget the answers about it unless an answer caused the reset."""
    p, task = event.payload, _task(state, event)
    why = p.get("reason")
    attempts = p.get("attempts", task.progress.attempts if why == ELSEWHERE else 0)
    state.update(
        task.id,
        status=outcome.PENDING,
        reason="",
        decisions=(),
        once=bool(p.get("once")) or (task.once and why in {ANSWERED, ELSEWHERE}),
        attempt=replace(task.attempt, running=False, unjudged=task.attempt.unjudged and why == ELSEWHERE),
        progress=replace(task.progress, attempts=attempts, exhausted=0, repeated=0, failure=("", "")),
    )
    state.failures_in_a_row = 0
    if why not in {ANSWERED, ELSEWHERE}:
        about = [id for id, question in state.decisions.items() if question.get("task") == task.id]
        replay_decision.forget(state, about)


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "task.carried": _carried,
    "task.completed": _becomes(outcome.COMPLETED),
    "task.failed": _becomes(outcome.FAILED),
    "task.waiting": _waiting,
    "task.accepted": _accepted,
    "task.skipped": _becomes(outcome.SKIPPED),
    "task.reset": _reset,
}
