"""Finishes or restores what a killed or interrupted run left. A kill during recovery is safe."""

from __future__ import annotations

from idumb.app.core import kept_runs
from idumb.app.core.run_context import INTERRUPTED_NAME, RunContext
from idumb.app.core.services import attempt_ref, run_ref
from idumb.app.engine import moves
from idumb.domain import outcome
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import INTERRUPTED


def recover(context: RunContext) -> None:
    """Bring every running task to a state from which the run can continue.

    An attempt that is open in an editor is left alone: its builder submits it or gives it up.
    """
    tasks = context.journal.state.tasks
    running = [
        t
        for t, task_state in tasks.items()
        if task_state.status == outcome.RUNNING and task_state.attempt.opened is None
    ]
    for task_id in running:
        context.checks.end_processes()
        moves.settle(context, context.contract.tasks[task_id])
    _keep_refs(context)


def _keep_refs(context: RunContext) -> None:
    """Restore missing refs of checkpoints whose commits still exist."""
    services, state = context.services, context.journal.state
    freed = kept_runs.freed(services).get(state.id, 0)
    done = {task: task_state.checkpoint for task, task_state in state.tasks.items() if not task_state.carried_from}
    names = {INTERRUPTED: INTERRUPTED_NAME}
    checkpoint_refs = {
        attempt_ref(services, context.run, task, kept.attempt, names.get(kept.status, "checkpoint")): kept.snapshot
        for task, kept in done.items()
        if kept is not None and kept.seq > freed
    }
    present = services.history.refs(run_ref(services, context.run, "")) if checkpoint_refs else {}
    for ref, commit in checkpoint_refs.items():
        if ref not in present:
            try:
                services.history.keep_ref(ref, commit)
            except Refusal:
                services.reporter.note(f"{ref} is gone, and so is its commit {commit[:12]}; idumb doctor has details")


def resolve_waiting(context: RunContext) -> None:
    """Ask what tasks wait for, at a terminal. Continue those whose questions are answered, end those that are late."""
    for task_id, task_state in list(context.journal.state.tasks.items()):
        if task_state.status == outcome.WAITING:
            moves.settle(context, context.contract.tasks[task_id], ask=True)
