"""Finishes or restores what a killed or interrupted run left. A kill during recovery is safe."""

from __future__ import annotations

import shlex

from idumb.app.attempt import interruption, projections
from idumb.app.core import kept_runs
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import attempt_ref, kept_at, run_ref
from idumb.app.engine import moves
from idumb.domain import outcome
from idumb.domain.errors import Refusal
from idumb.domain.runs.task_state import Checkpoint


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
    projections.checkpoints_again(context.services, context.journal.state, context.contract, running)
    _keep_refs(context)
    _refuse_emptied(context)


def _keep_refs(context: RunContext) -> None:
    """Restore missing refs of checkpoints whose commits still exist."""
    services, state = context.services, context.journal.state
    freed = kept_runs.freed(services).get(state.id, 0)
    done = {task: task_state.checkpoint for task, task_state in state.tasks.items() if not task_state.carried_from}
    checkpoint_refs = {
        attempt_ref(
            services, context.run, task, kept.attempt, interruption.INTERRUPTED_REFS.get(kept.status, "checkpoint")
        ): kept.snapshot
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


def _refuse_emptied(context: RunContext) -> None:
    """Refuse to continue if a file of a checkpoint is empty: that is damage, unless it was committed so."""
    services = context.services
    if context.workspace.kind != "here":
        return
    for path, kept in _last_checkpoints(context).items():
        if not services.reports.empty(path) or not _has_bytes(context, kept.tree, path):
            continue
        head = services.history.head_tree()
        if head is not None and services.trees.entry(head, path) is not None and not _has_bytes(context, head, path):
            continue
        raise Refusal(
            "task.emptied-path",
            f"{path} is empty, though its checkpoint has bytes; a power cut or a crash can do that.",
            hint=f"git show {kept_at(services, kept.snapshot[:12], path)} shows them: put them back, or commit it as it"
            f" is; then idumb resume {context.contract.phase}",
            details={
                "phase": context.contract.phase,
                "back": f"git show {shlex.quote(kept_at(services, kept.snapshot, path))} > {shlex.quote(path)}",
                "path": path,
                "snapshot": kept.snapshot,
            },
        )


def _last_checkpoints(context: RunContext) -> dict[str, Checkpoint]:
    """Return each path with the newest checkpoint of a completed task that touched it."""
    done = [t.checkpoint for t in context.journal.state.tasks.values() if t.status in outcome.DONE and t.checkpoint]
    return {path: kept for kept in sorted(done, key=lambda c: c.seq) for path in kept.files}


def _has_bytes(context: RunContext, tree: str, path: str) -> bool:
    entry = context.services.trees.entry(tree, path)
    return entry is not None and bool(context.services.trees.read(entry.oid))


def resolve_waiting(context: RunContext) -> None:
    """Continue tasks whose questions have all been answered, and end those whose time to answer is over."""
    for task_id, task_state in list(context.journal.state.tasks.items()):
        if task_state.status == outcome.WAITING:
            moves.settle(context, context.contract.tasks[task_id])
