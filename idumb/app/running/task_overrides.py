"""What a person decides about unfinished work, with a reason: accept a task, skip it, or drop it or its whole phase."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from idumb.app.attempt import handoff_writer, projections
from idumb.app.consent import phase_grants
from idumb.app.contract import changed_contract, loading
from idumb.app.core import actions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Result, Services, attempt_ref
from idumb.app.running import run_lifecycle
from idumb.app.session import next_steps, operation
from idumb.app.worktree import delivery, done_work, exposed_secrets, preconditions
from idumb.domain import outcome, paths, wording
from idumb.domain.action import REASON, Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_TASK

Then = Callable[[Journal], None]
"""What else happens in the same operation."""
Tell = Callable[[str], None]


def accept(services: Services, task: str, why: str, who: str, then: Then | None = None) -> Result:
    """Accept a task as it is, and commit what it changed, with the reason. In a phase without a run, begin the run."""
    contract, task_id = _named(services, "accept", task, why)
    before = run_lookup.latest_run(services, contract.phase)
    if before is not None:
        _require_left(services, contract, before, task_id, outcome.ENDED - {outcome.SKIPPED})
    elif contract.mode == STRICT:
        phase_grants.require_approval(services, contract)
    preconditions.require_guarded_files(services, before)
    preconditions.require_repository(services)
    if before is not None:
        preconditions.require_branch(services, before)
        done_work.refuse_lost(services, before)
    with operation.owned(services, "accept") as owned:
        journal = _journal(services, owned, contract, before, "it began with an accepted task")
        guarded = run_lookup.deviations(services, journal.state.id, task_id).protected
        fields: dict[str, Any] = {"reason": why, "by": who, "commit": None}
        fields |= _take_work(services, journal, contract, task_id, why, guarded)
        handoffs = handoff_writer.events_of_accepted(services, journal, contract, task_id, why)
        journal.write(journal.event("task.accepted", task_id, **fields), *handoffs)
        if then is not None:
            then(journal)
        projections.write_at_end(services, contract, journal.state)
    uncommitted = services.history.uncommitted(guarded)
    words = f"idumb does not commit what {task_id} wrote to protected paths; review it: {wording.listed(uncommitted)}"
    data = {**_answer(services, contract, journal.state, task_id), "commit": fields["commit"]}
    return Result(data, warnings=(words,) if uncommitted else ())


def skip(
    services: Services, task: str, why: str, who: str, then: Then | None = None, tell: Tell | None = None
) -> Result:
    """Skip a task. The tasks that depend on it stay blocked; `tell` gets their names first, or you confirm them."""
    contract, task_id = _named(services, "skip", task, why)
    state = run_lookup.require_run(services, contract.phase)
    _require_left(services, contract, state, task_id, outcome.ENDED)
    if tell is not None:
        _confirm_skip(services, contract, task_id, why, tell)
    with operation.recorded(services, "skip", state) as journal:
        journal.append("task.skipped", task_id, reason=why, by=who, commit=None)
        if then is not None:
            then(journal)
        projections.write_at_end(services, contract, state)
    return Result({**_answer(services, contract, state, task_id), "commit": None})


def _named(services: Services, command: str, task: str, why: str) -> tuple[Contract, str]:
    """Return the contract of a task and its id, if there is a reason to override it."""
    preconditions.require_reason(command, task, why)
    phase, task_id = run_lookup.find_task(task)
    contract = loading.valid_contract(services, loading.load_phase(services, phase))
    run_lookup.require_task(contract.tasks, task_id, phase)
    return contract, task_id


def _require_left(services: Services, contract: Contract, state: RunState, task: str, ended: Collection[str]) -> None:
    """Refuse if the run is of another contract, or the task has one of these statuses."""
    changed_contract.require_contract_of_run(services, contract, state)
    preconditions.require_settled(state)
    status = state.tasks[task].status
    if status in ended:
        words = f"{task} is already {status}."
        raise Refusal("task.already-done", words, hint=Action.of("show", task), details={"task": task})


def _answer(services: Services, contract: Contract, state: RunState, task: str) -> dict[str, Any]:
    statuses = schedule.statuses(contract, state)
    return {
        "task": next_steps.task_row(state, contract, task, statuses),
        "left": list(state.tasks[task].work.touched),
        "blocked": actions.blocked_groups(contract, state, statuses),
        "next": next_steps.of_run(services, contract, state, statuses),
    }


def drop(services: Services, target: str, why: str, who: str) -> Result:
    """Record that a person abandons what is left of a phase, or a task of it. Refusal if nothing is left."""
    preconditions.require_reason("drop", target, why)
    phase, task = run_lookup.phase_or_task(target)
    contract = loading.require_contract(services, phase, or_locked=task is None)  # the plan may have been removed
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None:
        preconditions.require_settled(state)
        if task is not None:
            changed_contract.require_contract_of_run(services, contract, state)
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
        journal = _journal(services, owned, contract, state, "nothing of it ran")  # nothing runs after an undo, either
        dropped = journal.event("work.dropped", tasks=list(tasks), whole=task is None, reason=why, by=who)
        fields = {"reason": f"dropped: {why}", "by": who, "commit": None}
        journal.write(dropped, *(journal.event("task.skipped", t, **fields) for t in tasks))
        projections.write_at_end(services, contract, journal.state)
    undo = Action.of("undo", "--yes", "--operation", owned.operation)
    going_on = [Action("next") if task is None else Action.of("resume", contract.phase)]
    data = {"phase": contract.phase, "task": task, "tasks": list(tasks), "operation": owned.operation}
    return Result({**data, "next": [*going_on, undo]})


def _journal(
    services: Services, owned: operation.Owned, contract: Contract, state: RunState | None, why: str
) -> Journal:
    """Return the journal of the run. In a phase without one, begin it and halt it at once. No program starts."""
    if state is not None:
        return owned.journal(state)
    journal = run_lifecycle.take_up(services, owned, contract, RunRequest(contract.phase, command=owned.command))
    journal.append("run.halted", reason=why)
    return journal


def _confirm_skip(services: Services, contract: Contract, task: str, why: str, tell: Tell) -> None:
    """At a terminal, ask to confirm that dependent tasks stay blocked; Refusal `skip.not-confirmed` on a no."""
    blocked = schedule.dependents(contract, task)
    what = f"Skipping {task} leaves {wording.listed(blocked)} blocked"
    if not blocked:
        return
    if not services.asker.interactive:
        tell(f"{what}.")
        return
    accept = Action.of("accept", task, "--why", REASON)
    question = Decision.confirmation(
        f"{task}.skip",
        "skip",
        what,
        "A task that depends on a skipped task runs only after you accept that task or drop the dependency.",
        (f"{t} {contract.tasks[t].title} needs {task}" for t in blocked),
        Choice("skip", "skip it", f"they wait; {accept} lets them run", Action.of("skip", task, "--why", why, "--yes")),
        "do not skip it",
        "nothing changes",
        task=task,
    )
    words, details = f"Nothing was changed. {what}.", actions.offer_of(question, tasks=list(blocked))
    actions.require_yes(services, question, Refusal("skip.not-confirmed", words, details=details))


def _take_work(
    services: Services, journal: Journal, contract: Contract, task: str, why: str, guarded: Sequence[str]
) -> dict[str, Any]:
    """Deliver and commit what an accepted task left: the paths it touched, and declared ones that you edited since.

    Protected paths are neither delivered nor committed, because no task may write them.
    """
    task_state = journal.state.tasks[task]
    if task_state.work.base is None:
        return {}
    commits = journal.state.policy == COMMIT_TASK
    kept = delivery.kept_files(task_state, guarded)
    if task_state.checkpoint is not None and kept:
        if commits:
            exposed_secrets.require_none(services, task, task_state.checkpoint.tree, kept)
        delivery.deliver_kept(services, task_state, kept)
    declared = services.history.uncommitted(ledger.written_paths(contract.tasks[task].files))
    edited = (p for p in declared if not paths.matches_any(p, paths.OWN_FILES))
    touched = tuple(dict.fromkeys((*task_state.work.touched, *kept, *edited)))
    delivered = tuple(path for path in touched if path not in guarded)
    if commits:
        exposed_secrets.require_none(services, task, services.trees.scan(delivered), delivered)
    commit = None
    if commits and delivered:
        values = {"title": contract.tasks[task].title, "id": task, "phase": contract.phase}
        trailers = {"Idumb-Run": journal.state.id, "Idumb-Task": task, "Idumb-Accepted": "true"}
        message = services.settings.git.commit_message(values, trailers, f"Accepted: {why}")
        changed, refused = services.history.uncommitted(delivered), f"git refused the commit of {task}"
        commit = preconditions.commit_or_fail(services, journal.state, changed, message, refused)
    # A ref keeps this tree from being collected by git, because a rollback compares with it.
    ref = attempt_ref(services, journal.state.id, task, task_state.attempt.number, "accepted")
    snapshot = services.trees.keep(ref, services.trees.scan(touched), f"{task}, accepted")
    return {"commit": commit, "touched": list(touched), "left": snapshot.tree}
