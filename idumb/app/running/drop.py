"""Abandon a phase, a quick task, or a task with all that depends on it. Files stay as they are; `undo` reverses it."""

from __future__ import annotations

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
from idumb.domain.action import Action
from idumb.domain.errors import Refusal


def drop(services: Services, target: str, why: str, who: str) -> Result:
    """Record that a person abandons what is left of a phase, or a task of it. Refusal if nothing is left."""
    preconditions.require_reason(why, target)
    phase, task = run_lookup.phase_or_task(target)
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
    if not tasks or task not in (None, *tasks):
        words = f"{target} cannot be dropped: nothing of it is left to do."
        raise Refusal("drop.nothing-left", words, hint=Action("status"), details={"phase": contract.phase})
    with operation.owned(services, "drop") as owned:
        if state is None:
            journal = run_lifecycle.take_up(services, owned, contract, Request(contract.phase, command="drop"))
        else:
            journal = owned.journal(state)
        dropped = journal.event("work.dropped", tasks=list(tasks), whole=task is None, reason=why, by=who)
        fields = {"reason": f"dropped: {why}", "by": who, "commit": None}
        journal.write(dropped, *(journal.event("task.skipped", t, **fields) for t in tasks))
        projections.ending(services, contract, journal.state)
    undo = Action.of("undo", "--yes", "--operation", owned.operation)
    going_on = [Action("next") if task is None else Action.of("resume", contract.phase)]
    data = {"phase": contract.phase, "task": task, "tasks": list(tasks), "operation": owned.operation}
    return Result({**data, "next": [*going_on, undo]})
