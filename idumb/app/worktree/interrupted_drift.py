"""What became of branch, refs and index in an attempt that was cut short; nobody looked at its end, so it is told."""

from __future__ import annotations

from idumb.app.core.run_context import Bench
from idumb.app.core.services import attempt_ref
from idumb.app.worktree import moved_refs, staged_changes
from idumb.domain import wording
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.runs.task_state import TaskState


def tell(bench: Bench, task: Task, known: TaskState) -> None:
    """Name what is not as the attempt's snapshot has it, and the command that leads back. It may be the user's own."""
    if known.work.snapshot is None or task.is_human or known.attempt.opened is not None:
        return
    try:
        _tell_branch(bench, task, known, known.work.snapshot)
        _tell_refs(bench, task, known, known.work.snapshot)
        staged_changes.tell(bench, task, known.attempt.number, known.work.snapshot)
    except (Refusal, KeyError, ValueError):
        return  # a snapshot that is gone is for `doctor`, and stops nobody from going on


def _tell_branch(bench: Bench, task: Task, known: TaskState, snapshot: str) -> None:
    history = bench.services.history
    was, now = history.head_at(snapshot), history.head().commit
    if was == now or now is None:
        return
    made = {commit for commit, trailers in history.trailers_since(was) if trailers.get("Idumb-Run") == bench.run}
    if now in made:
        return
    history.keep_ref(
        attempt_ref(bench.services, bench.run, task.id, known.attempt.number, f"meanwhile/{now[:16]}"), now
    )
    bench.services.reporter.note(
        f"Since {task.id} began, HEAD went from {was or 'no commit'} to {now}, and idumb did not do that:"
        f" git log --stat {f'{was}..' if was else ''}{now}"
    )


def _tell_refs(bench: Bench, task: Task, known: TaskState, snapshot: str) -> None:
    services = bench.services
    found = moved_refs.moved(
        services.trees.refs_at(snapshot), services.history.state().refs, bench.journal.state.branch
    )
    loud = [one for one in found if moved_refs.is_loud(services.history, one)]
    if not loud:
        return
    held = attempt_ref(services, bench.run, task.id, known.attempt.number)
    gone = [one.name for one in loud if not moved_refs.keep(services.history, held, one)]
    words = f"Since {task.id} began, refs moved: {wording.listed(one.words for one in loud)}"
    words += f". What they named is gone: {wording.listed(gone)}" if gone else ""
    back = "; ".join(one.back for one in loud[: wording.MOST_LISTED] if one.name not in gone)
    services.reporter.note(words + (f". As they were before: {back}" if back else ""))
