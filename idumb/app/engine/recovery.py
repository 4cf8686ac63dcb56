"""Finishes or restores what a killed or interrupted run left. A kill during recovery is safe."""

from __future__ import annotations

from idumb.app.core.run_context import RunContext
from idumb.app.engine import moves
from idumb.domain import outcome


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


def resolve_waiting(context: RunContext) -> None:
    """Ask what tasks wait for, at a terminal. Continue those whose questions are answered, end those that are late."""
    for task_id, task_state in list(context.journal.state.tasks.items()):
        if task_state.status == outcome.WAITING:
            moves.settle(context, context.contract.tasks[task_id], ask=True)
