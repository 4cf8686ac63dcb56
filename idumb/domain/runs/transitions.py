"""Which event may follow in which state of a run. `idumb debug validate` asks; nothing that runs does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from idumb.domain import outcome
from idumb.domain.runs.event import PAYLOAD_VERSION, Event
from idumb.domain.runs.run import ACTIVE, RunState, TaskState, chained

_STARTED = "run.started"


def fault(state: RunState, event: Event) -> str:
    """Return why an event may not follow in this state; "" if it may."""
    if event.version != PAYLOAD_VERSION:
        return f"its payload has form {event.version}, and this idumb reads form {PAYLOAD_VERSION}"
    if (event.kind == _STARTED) != (not state.id):
        return "the run had started before" if state.id else f"the first event of the run is no {_STARTED}"
    if event.kind in _OF_RUNS:
        return next(_OF_RUNS[event.kind](state, event), "")
    task = state.tasks.get(event.task or "")
    if event.kind not in _OF_TASKS:
        return ""
    if task is None:
        return f"the contract has no task {event.task}"
    return next(_OF_TASKS[event.kind](state, task, event), "")


def _amended(state: RunState, event: Event) -> Iterator[str]:
    p, now = event.payload, state.contract
    if p["version"] != now.version + 1:
        yield f"version {p['version']} follows version {now.version}"
    if p["from"] != now.hash or p["chain"] != chained(now.chain, p["to"]):
        yield "it does not follow the contract before it"


def _answered(state: RunState, event: Event) -> Iterator[str]:
    question = state.decisions.get(event.payload["decision"])
    if question is None:
        yield f"{event.payload['decision']} was never asked"
    elif event.payload["choice"] not in [choice["id"] for choice in question["choices"]]:
        yield f"{event.payload['choice']} is no choice of {event.payload['decision']}"


def _attempt_started(state: RunState, task: TaskState, event: Event) -> Iterator[str]:
    if state.state != ACTIVE:
        yield f"the run is {state.state}"
    if event.attempt != task.attempt.number + 1:
        yield f"attempt {event.attempt} follows attempt {task.attempt.number}"
    if task.attempt.running or task.status not in outcome.NOT_RUN:
        yield f"{task.id} is {task.status}"


def _in_attempt(_: RunState, task: TaskState, event: Event) -> Iterator[str]:
    """What the commands of a rollback prove belongs to no attempt."""
    if event.attempt not in (None, task.attempt.number):
        yield f"attempt {event.attempt} is not the last one of {task.id}, {task.attempt.number}"


def _running(state: RunState, task: TaskState, event: Event) -> Iterator[str]:
    yield from _in_attempt(state, task, event)
    if not task.attempt.running:
        yield f"attempt {event.attempt} of {task.id} had ended"


def _finished(state: RunState, task: TaskState, event: Event) -> Iterator[str]:
    """An attempt ends again if it waited, deviated, or if a hook changed what was proven."""
    yield from _in_attempt(state, task, event)
    last = task.attempt
    if not (last.running or last.outcome == outcome.WAITING or last.deviates or task.intended):
        yield f"attempt {event.attempt} of {task.id} had ended"


def _completed(_: RunState, task: TaskState, event: Event) -> Iterator[str]:
    if task.attempt.outcome != outcome.COMPLETED or task.checkpoint is None:
        yield f"attempt {event.attempt} of {task.id} has no checkpoint of completed work"


def _not_done(_: RunState, task: TaskState, __: Event) -> Iterator[str]:
    if task.status in outcome.ENDED:
        yield f"{task.id} is {task.status}"


_OF_RUNS: Mapping[str, Callable[[RunState, Event], Iterator[str]]] = {
    "contract.amended": _amended,
    "decision.answered": _answered,
}
_OF_TASKS: Mapping[str, Callable[[RunState, TaskState, Event], Iterator[str]]] = {
    "attempt.started": _attempt_started,
    "attempt.opened": _running,
    "attempt.told": _running,
    "attempt.finished": _finished,
    "attempt.interrupted": _in_attempt,
    "evidence.recorded": _in_attempt,
    "step.finished": _running,
    "checkpoint.intended": _in_attempt,
    "checkpoint.recorded": _in_attempt,
    "task.completed": _completed,
    "task.failed": _not_done,
    "task.waiting": _not_done,
}
