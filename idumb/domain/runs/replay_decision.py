"""Replay of questions to a person, their answers, and guidance for a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from idumb.domain.runs.event import Event
from idumb.domain.runs.run import EXHAUSTED, RunState

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


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "decision.asked": _asked,
    "decision.answered": _answered,
    "task.guided": _guided,
}
