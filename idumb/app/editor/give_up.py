"""Give up an open attempt: keep its work in a snapshot, and revert it in the working tree."""

from __future__ import annotations

from idumb.app.attempt import projections
from idumb.app.contract import loading
from idumb.app.core import open_attempt, run_context, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services, attempt_ref
from idumb.app.engine import unfinished_attempts
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import wording
from idumb.domain.action import REASON, Action
from idumb.domain.errors import Refusal


def give_up(services: Services, task: str, why: str, by: str, accept_git: tuple[str, ...] = ()) -> Result:
    """Record that the open attempt was interrupted, keep its work in a snapshot, and revert it."""
    preconditions.require_reason(why, task)
    phase, task_id = run_lookup.find_task(task)
    state = run_lookup.require_run(services, phase)
    task_state = open_attempt.require(state, task_id)
    if task_state.attempt.opened is None:
        raise Refusal(
            "attempt.not-open",
            f"{task_id} is already submitted.",
            hint=Action.of("submit", task_id),
            details={"task": task_id},
        )
    contract = loading.locked_contract(services, state)
    preconditions.require_guarded(services, state, accept_git)
    preconditions.require_branch(services, state)
    with operation.owned(services, "give-up") as owned:
        journal = owned.journal(state)
        preconditions.accept_guarded(services, journal, accept_git)
        context = run_context.opened(services, journal, contract, in_place=True)
        reason = f"given up by {by}: {' '.join(why.split())}"
        unfinished_attempts.record_interruption(context, contract.tasks[task_id], reason)
        touched = list(state.tasks[task_id].work.touched)
        work = state.tasks[task_id].work
        conflicts = services.trees.restore(work.base or "", work.left_tree or "", touched) if touched else ()
        if conflicts:
            paths = [conflict.path for conflict in conflicts]
            words = f"{task_id} is given up, but these files changed while they were restored: {wording.listed(paths)}"
            details = {"phase": state.phase, "task": task_id, "paths": paths}
            raise Refusal("task.changed-since", words, hint="git status", details=details)
        projections.stopped(services, contract, state)
    name = attempt_ref(services, state.id, task_id, task_state.attempt.number, "interrupted")
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "task": task_id,
            "attempt": task_state.attempt.number,
            "kept": services.history.kept(name) or "",
            "put_back": touched,
            "next": [Action.of("start", task_id), Action.of("skip", task_id, "--why", REASON)],
        }
    )
