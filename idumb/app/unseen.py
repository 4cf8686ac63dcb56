"""What became of branch and index in an attempt that was cut short: nobody looked when it ended, so it is told only."""

from __future__ import annotations

from idumb.app.bench import Bench
from idumb.app.services import attempt_ref
from idumb.domain import ledger, listing, paths
from idumb.domain.errors import Refusal
from idumb.domain.plan import Task
from idumb.domain.run import TaskState


def tell(bench: Bench, task: Task, known: TaskState) -> None:
    """Name what is not as the attempt's snapshot has it, and the command that leads back. It may be the user's own."""
    if known.snapshot is None or task.is_human or known.opened is not None:
        return
    try:
        _tell_branch(bench, task, known, known.snapshot)
        _tell_index(bench, task, known.snapshot)
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
    history.keep_ref(attempt_ref(bench.services, bench.run, task.id, known.attempt, f"meanwhile/{now[:16]}"), now)
    bench.services.reporter.note(
        f"Since {task.id} began, HEAD went from {was or 'no commit'} to {now}, and idumb did not do that:"
        f" git log --stat {f'{was}..' if was else ''}{now}"
    )


def _tell_index(bench: Bench, task: Task, snapshot: str) -> None:
    history = bench.services.history
    covers = paths.cover(ledger.written_paths(task.files))
    changed = [path for path in history.index_changes(snapshot, history.index()) if not covers(path)]
    if changed:
        bench.services.reporter.note(
            f"Since {task.id} began, the index changed: {listing.listed(changed)}."
            f" As it was before, in the top folder: {history.index_command(snapshot)}"
        )
