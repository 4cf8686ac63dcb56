"""Records an attempt that was killed or interrupted: its files are kept, and the next attempt starts from its base."""

from __future__ import annotations

from idumb.app.attempt import attempt_events
from idumb.app.core import questions
from idumb.app.core.run_context import INTERRUPTED_NAME, RunContext
from idumb.app.core.services import attempt_ref
from idumb.app.ports.repository import Snapshot
from idumb.domain import paths
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import INTERRUPTED

KILLED = "idumb was killed during the attempt"


def record_interruption(context: RunContext, task: Task, why: str = KILLED, seconds: float = 0.0) -> None:
    """Record it with a checkpoint of what it left. It does not count as an attempt.

    `seconds` is how long it took, 0 if unknown.
    """
    context = context.of(task)
    task_state = context.journal.state.tasks[task.id]
    if task_state.work.base is None or not (task_state.attempt.running or task_state.intended):
        return
    context.checks.end_processes()
    number = task_state.attempt.number
    left = _kept(context, task, number, task_state.work.base)
    changed = _changed(context, task, task_state.work.base, left.tree)
    event, effect = context.journal.event, questions.effect_payload(task)
    touched = list(changed) if context.workspace.in_place else []
    files = {"left": left.tree, "touched": touched, "snapshot": left.commit, "ref": left.ref}
    ended = {"status": INTERRUPTED, "error": why, "seconds": round(seconds, 3), "files": list(changed)}
    ended |= {"git_hash": context.services.history.head().commit, "commit": None, "verdict": None}
    context.journal.write(
        event("attempt.interrupted", task.id, number, **files, reason=why, **effect),
        event("checkpoint.recorded", task.id, number, **ended, **attempt_events.of_kept(left)),
    )


def _kept(context: RunContext, task: Task, number: int, base: str) -> Snapshot:
    """Keep what the attempt left, under its name; in a checkout, that may be kept already, or not have begun."""
    services = context.services
    ref = attempt_ref(services, context.run, task.id, number, INTERRUPTED_NAME)
    why = f"{task.id}, attempt {number}, interrupted"
    if context.workspace.in_place:
        return services.trees.snapshot(ref, why, ledger.named_paths(task.files))
    context.workspace.keep()
    kept = services.history.kept(ref)
    if kept is None:
        return services.trees.keep(ref, base, why)
    return Snapshot(kept, services.trees.tree_at(kept), ref)


def _changed(context: RunContext, task: Task, base: str, left: str) -> tuple[str, ...]:
    """Return the declared paths that changed and are not committed: in place, `give-up` restores them."""
    trees, head = context.services.trees, context.services.history.head_tree()
    covers = paths.cover(ledger.written_paths(task.files))
    changed = (change for change in trees.changes(base, left) if covers(change.path))
    return tuple(c.path for c in changed if head is None or trees.entry(head, c.path) != c.new)
