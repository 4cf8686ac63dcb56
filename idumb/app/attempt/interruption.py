"""Records an attempt that was killed or interrupted."""

from __future__ import annotations

from idumb.app.attempt import external_effects, projections
from idumb.app.core.run_context import Bench
from idumb.app.core.services import attempt_ref
from idumb.app.ports.repository import Snapshot
from idumb.app.worktree import abandoned_clones, nested_repositories, preconditions, task_base
from idumb.domain import listing, paths
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import INTERRUPTED

REFS = {INTERRUPTED: "interrupted"}  # what the ref of a checkpoint is called, where it has a name of its own


KILLED = "idumb was ended in the middle of it"


def record_interruption(bench: Bench, task: Task, why: str = KILLED, seconds: float = 0.0) -> None:
    """Keep the present as a checkpoint, say what the attempt touched of its declared paths; it does not count.

    `seconds` is how long it took, 0 where nobody who is left knows.
    """
    known = bench.journal.state.tasks[task.id]
    if known.base is None or not (known.running or known.intended):
        return
    bench.checks.end_processes()
    services = bench.services
    ref = attempt_ref(services, bench.run, task.id, known.attempt, REFS[INTERRUPTED])
    declared = ledger.written_paths(task.files)
    here = task_base.made_in(bench, known) == "here"
    if not here:
        abandoned_clones.keep_unfinished(bench)
    kept = None if here else services.history.refs(ref).get(ref)
    if kept is None:
        reason = f"{task.id}, attempt {known.attempt}, interrupted"
        snapshot = services.trees.snapshot(ref, reason, ledger.named_paths(task.files))
    else:  # what was in the clone; nothing of it is in the user's tree
        snapshot = Snapshot(kept, services.trees.kept_tree(kept), ref)
    changed = services.trees.changes(known.base, snapshot.tree) if here else ()
    covers = paths.cover(declared)
    head = services.history.head_tree() if changed else None
    # What is committed by now is somebody's word, and never put back.
    changed = tuple(c for c in changed if head is None or services.trees.entry(head, c.path) != c.new)
    tampered = preconditions.changed_guarded(services, bench.journal.state)
    theirs = services.trees.repositories() if here else ()
    touched = [c.path for c in changed if covers(c.path) and paths.repository_of(c.path, theirs) is None]
    inner = nested_repositories.since(bench, task.id, known.attempt) if theirs else ()
    attributed = {*touched, *inner}
    others = [c.path for c in changed if c.path not in attributed and not paths.matches_any(c.path, paths.OWN_FILES)]
    others += inner
    bench.journal.write(
        bench.journal.event(
            "attempt.interrupted",
            task.id,
            known.attempt,
            left=snapshot.tree,
            touched=touched,
            others=others,
            snapshot=snapshot.commit,
            ref=ref,
            reason=why,
            **({"guarded": list(tampered)} if tampered else {}),
            **external_effects.of_attempt(task),
        ),
        bench.journal.event(
            "checkpoint.recorded",
            task.id,
            known.attempt,
            status=INTERRUPTED,
            git_hash=services.history.head().commit,
            commit=None,
            snapshot=snapshot.commit,
            ref=ref,
            tree=snapshot.tree,
            files=touched,
            seconds=round(seconds, 3),
            error=why,
            verdict=None,
            left=None,
        ),
    )
    projections.checkpoints_again(services, bench.journal.state, bench.contract, [task.id])
    _note_others(bench, task, others)


def _note_others(bench: Bench, task: Task, others: list[str]) -> None:
    """Changes that may be the user's are left as they are, and named."""
    if others:
        bench.services.reporter.note(
            f"{task.id} was interrupted; also changed since then, left as it is: {listing.listed(others)}"
        )
