"""Abandon a phase, a quick task, or a task with all that depends on it. Files stay as they are; `undo` reverses it."""

from __future__ import annotations

from contextlib import suppress

from idumb.app.attempt import projections
from idumb.app.contract import changed_contract, loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.running import run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import outcome
from idumb.domain.errors import InputError, Refusal


def drop(services: Services, target: str, why: str, who: str) -> Result:
    """Record that a person abandons what is left of a phase, or a task of it. Refusal if nothing is left."""
    if not why.strip():
        raise InputError("task.no-reason", "A reason is needed.", hint=f"--why 'the reason' for {target}")
    preconditions.require_initialised(services)
    phase, task = target, None
    with suppress(InputError):  # it names a phase
        phase, task = run_lookup.find_task(target)
    contract = loading.runnable(services, loading.load_phase(services, phase))
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None:
        preconditions.require_settled(state)
        if task is not None:
            changed_contract.require_same(services, contract, state)
    tasks = tuple(contract.order)
    if task is not None:
        run_lookup.require_task(contract.tasks, task, contract.phase)
        tasks = (task, *schedule.dependents(contract, task))
    if state is not None:
        tasks = tuple(t for t in tasks if t in state.tasks and state.tasks[t].status not in outcome.ENDED)
    if task is not None and task not in tasks:
        words = "is already done or skipped"
        raise Refusal("task.already-done", f"{task} {words}.", hint=f"idumb show {task}", details={"task": task})
    if not tasks:
        raise Refusal(
            "drop.nothing-left",
            f"Every task of phase {contract.phase} is done or skipped.",
            hint=f"idumb rollback {contract.phase} --to start",
            details={"phase": contract.phase},
        )
    with operation.owned(services, "drop") as owned:
        if state is None:
            journal = run_lifecycle.take_up(services, owned, contract, Request(contract.phase, command="drop"))
        else:
            journal = owned.journal(state)
        whole, reason = task is None, f"dropped: {why}"
        event = journal.event("work.dropped", tasks=list(tasks), whole=whole, reason=why, by=who)
        skips = (journal.event("task.skipped", t, reason=reason, by=who, commit=None) for t in tasks)
        journal.write(event, *skips)
        projections.ending(services, contract, journal.state)
    undo = f"idumb undo --yes --operation {owned.operation}"
    going_on = ["idumb next"] if whole else [f"idumb resume {contract.phase}"]
    data = {"phase": contract.phase, "task": task, "tasks": list(tasks), "operation": owned.operation}
    return Result({**data, "next": [*going_on, undo]})
