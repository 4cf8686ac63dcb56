"""Builds the state of a run from its events; each event family has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from idumb.domain.runs import replay_attempt, replay_rollback, replay_run, replay_task
from idumb.domain.runs.event import BESIDE, Event
from idumb.domain.runs.run import RunState

_STATUS_KINDS = (
    "run.",
    "task.",
    "attempt.",
    "checkpoint.recorded",
    "rollback.completed",
    "undo.completed",
    "contract.",
)
_HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    **replay_run.HANDLERS,
    **replay_task.HANDLERS,
    **replay_attempt.HANDLERS,
    **replay_task.DECISION_HANDLERS,
    **replay_rollback.HANDLERS,
}


def replay(events: Iterable[Event]) -> RunState:
    """Return the state of one run from its events, in order of their sequence numbers."""
    state = RunState()
    for event in events:
        apply(state, event)
    return state


def apply(state: RunState, event: Event) -> None:
    """Update the state by one event. Kinds that do not concern a run only advance its sequence number."""
    handler = _HANDLERS.get(event.kind)
    if handler is not None:
        handler(state, event)
    if event.kind.startswith(_STATUS_KINDS):
        state.moved_at = event.at
    state.last_seq = event.seq
    if event.kind not in BESIDE:
        state.changed_at = event.at
