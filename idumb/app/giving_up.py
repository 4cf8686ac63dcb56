"""`give-up`: an open attempt ends without its work, which is kept in a snapshot and taken out of the files."""

from __future__ import annotations

from idumb.app import leftovers, loading, opened, place, publish, recovery, session
from idumb.app.result import Result
from idumb.app.services import Services, attempt_ref
from idumb.domain.errors import InputError, Refusal


def give_up(services: Services, task: str, why: str, by: str, accept_git: tuple[str, ...] = ()) -> Result:
    """Record that the open attempt is not finished; its work is kept in a snapshot and taken out of the files."""
    if not why.strip():
        raise InputError("task.no-reason", "A reason is needed.", hint=f"--why 'the reason' for {task}")
    phase, task_id = session.find_task(task)
    place.require_initialised(services)
    state = session.require_run(services, phase)
    known = opened.require(state, task_id)
    if known.opened is None:
        raise Refusal(
            "attempt.not-open",
            f"{task_id} was submitted already.",
            hint=f"idumb submit {task_id}",
            details={"task": task_id},
        )
    contract = loading.contract_of(services, state)
    place.require_guarded(services, state, accept_git)
    place.require_branch(services, state)
    with session.owned(services, "give-up") as owned:
        journal = owned.journal(state)
        place.accept_guarded(services, journal, accept_git)
        bench = session.bench(services, journal, contract, workspace="here")
        recovery.record_interruption(bench, contract.tasks[task_id], f"given up by {by}: {' '.join(why.split())}")
        touched = list(state.tasks[task_id].touched)
        leftovers.take_back(bench, contract.tasks[task_id])
        publish.write_progress(services, contract, state)
    kept = attempt_ref(services, state.id, task_id, known.attempt, "interrupted")
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "task": task_id,
            "attempt": known.attempt,
            "kept": kept,
            "put_back": touched,
            "next": [f"idumb start {task_id}", f"idumb skip {task_id} --why REASON"],
        }
    )
