"""The finished, unchanged tasks that a new run takes over from the previous run."""

from __future__ import annotations

from msgspec.structs import asdict

from idumb.app.core.journal import Journal
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState


def carried(contract: Contract, before: RunState) -> tuple[str, ...]:
    """The tasks that the previous run finished, that did not change, and whose dependencies are carried too."""
    tasks: dict[str, None] = {}
    for task in contract.order:
        earlier = before.tasks.get(task)
        if earlier and earlier.omitted_by in ((task,) if contract.tasks[task].is_history else tasks):
            tasks[task] = None
            continue
        if earlier is None or earlier.status not in outcome.DONE or earlier.checkpoint is None:
            continue
        same = earlier.digest == contracts.task_digest(contract.tasks[task])
        if same and all(d in tasks for d in contract.dependencies[task]):
            tasks[task] = None
    return tuple(tasks)


def done_but_changed(contract: Contract, before: RunState) -> tuple[str, ...]:
    """Finished tasks that a new run would repeat on top of their own work; () if the files contain none of it."""
    kept = carried(contract, before)
    again = [
        task
        for task in before.attempted
        if task in contract.tasks and task not in kept and before.tasks[task].status in outcome.DONE
    ]
    return tuple(again) if any(before.tasks[t].work.touched for t in again) else ()


def rollback_target(state: RunState, task: str) -> str:
    """The target of a rollback that undoes this task: the task attempted before it, or `start`."""
    earlier = [t for t, seq in state.attempted.items() if seq < state.attempted[task]]
    return earlier[-1] if earlier else "start"


def events(journal: Journal, contract: Contract, before: RunState) -> list[NewEvent]:
    """The events that record the carried tasks in the new run."""
    carried_events: list[NewEvent] = []
    for task in carried(contract, before):
        earlier = before.tasks[task]
        if earlier.status == outcome.OMITTED:
            carried_events.append(journal.event("task.omitted", task, by=earlier.omitted_by, reason=earlier.reason))
            continue
        assert earlier.checkpoint is not None  # noqa: S101 - `carried` requires a checkpoint
        carried_events.append(
            journal.event(
                "task.carried",
                task,
                from_run=before.id,
                status=earlier.status,
                reason=earlier.reason,
                effect=earlier.effect,
                **({"outputs": dict(earlier.outputs)} if earlier.outputs else {}),
                checkpoint=asdict(earlier.checkpoint),
            )
        )
    return carried_events
