"""Replay of the events that set the status of a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from idumb.domain import outcome
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import ANSWERED, ELSEWHERE, EXHAUSTED, RunState
from idumb.domain.runs.task_state import Checkpoint


def _carried(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
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
        task = state.task_of(event)
        attempt = replace(task.attempt, running=False, opened=None)
        state.update(task.id, status=status, reason=event.payload.get("reason", ""), attempt=attempt)
        if status in outcome.DONE:
            state.failures_in_a_row = 0
        elif status == outcome.FAILED:
            state.failures_in_a_row += 1

    return handler


def _accepted(state: RunState, event: Event) -> None:
    """Keep the accepted files as the task's work, also if a person changed them by hand."""
    p, work = event.payload, state.task_of(event).work
    _becomes(outcome.ACCEPTED)(state, event)
    touched = tuple(p.get("touched", work.touched))
    work = replace(work, left=p.get("left", work.left), touched=touched)
    state.update(event.task or "", accepted_commit=p.get("commit"), work=work)


def _waiting(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    state.update(
        task.id,
        status=outcome.WAITING,
        reason=p.get("reason", ""),
        decisions=tuple(p.get("decisions", ())),
        attempt=replace(task.attempt, running=False),
    )


def _reset(state: RunState, event: Event) -> None:
    """Make a task pending again, and forget the answers about it unless an answer caused the reset."""
    p, task = event.payload, state.task_of(event)
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
        forget(state, about)


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "task.carried": _carried,
    "task.completed": _becomes(outcome.COMPLETED),
    "task.failed": _becomes(outcome.FAILED),
    "task.waiting": _waiting,
    "task.accepted": _accepted,
    "task.skipped": _becomes(outcome.SKIPPED),
    "task.reset": _reset,
}


_RETRIED = frozenset({EXHAUSTED, "failure", "deviation", "effect", "ceiling"})
"""Kinds of questions after which the task can be retried; the guidance of their answers is for the next builder."""


def _asked(state: RunState, event: Event) -> None:
    state.decisions[event.payload["id"]] = event.payload


def _answered(state: RunState, event: Event) -> None:
    p = event.payload
    state.answers[p["decision"]] = p
    question = state.decisions.get(p["decision"], {})
    if question.get("kind") in _RETRIED and question.get("task") in state.tasks and p.get("guidance"):
        _guide(state, str(question["task"]), p)


def _guided(state: RunState, event: Event) -> None:
    _guide(state, event.task or "", event.payload)


def _guide(state: RunState, task: str, payload: Mapping[str, Any]) -> None:
    guidance = f"{payload['by']} says: {payload['guidance']}"
    state.update(task, context=replace(state.tasks[task].context, guidance=guidance))


def answers_about(state: RunState, tasks: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return the answers to questions about these tasks and about the phase as a whole."""
    subjects = ((id, state.decisions.get(id, {}).get("task")) for id in state.answers)
    return {id: state.answers[id] for id, task in subjects if task is None or task in tasks}


def forget(state: RunState, answers: Iterable[str]) -> None:
    for decision in answers:
        state.answers.pop(decision, None)


DECISION_HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "decision.asked": _asked,
    "decision.answered": _answered,
    "task.guided": _guided,
}
