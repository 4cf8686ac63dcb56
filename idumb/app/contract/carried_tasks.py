"""What a new run takes over from the one before: tasks that are done and whose text is the same."""

from __future__ import annotations

from idumb.app.core.journal import Journal
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState


def carried(contract: Contract, before: RunState) -> tuple[str, ...]:
    """Tasks done by the run before whose text is the same, and all whose dependencies are carried too."""
    found: dict[str, None] = {}
    for task in contract.order:
        known = before.tasks.get(task)
        if known is None or known.status not in outcome.DONE or known.checkpoint is None:
            continue
        same = known.digest == contracts.task_digest(contract.tasks[task])
        if same and all(d in found for d in contract.dependencies[task]):
            found[task] = None
    return tuple(found)


def done_but_changed(contract: Contract, before: RunState) -> tuple[str, ...]:
    """Tasks whose work a new run would make again on top of itself; none where nothing of it is in the files."""
    kept = carried(contract, before)
    again = [
        task
        for task in before.attempted
        if task in contract.tasks and task not in kept and before.tasks[task].status in outcome.DONE
    ]
    return tuple(again) if any(before.tasks[t].work.touched for t in again) else ()


def before(state: RunState, task: str) -> str:
    """What a rollback that takes this task back goes to: the task attempted before it, or the start."""
    earlier = [t for t, seq in state.attempted.items() if seq < state.attempted[task]]
    return earlier[-1] if earlier else "start"


def events(journal: Journal, contract: Contract, before: RunState) -> list[NewEvent]:
    found: list[NewEvent] = []
    for task in carried(contract, before):
        known = before.tasks[task]
        c = known.checkpoint
        assert c is not None  # noqa: S101 - `carried` looked
        found.append(
            journal.event(
                "task.carried",
                task,
                from_run=before.id,
                status=known.status,
                reason=known.reason,
                effect=known.effect,
                checkpoint={
                    "status": c.status,
                    "git_hash": c.git_hash,
                    "snapshot": c.snapshot,
                    "tree": c.tree,
                    "files": list(c.files),
                    "attempt": c.attempt,
                    "seconds": c.seconds,
                    "at": c.at,
                    "seq": c.seq,
                    "error": c.error,
                    "commit": c.commit,
                },
            )
        )
    return found
