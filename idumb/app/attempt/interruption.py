"""Records an attempt that was killed or interrupted: a checkpoint of the present, and what it touched."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app.attempt import projections, questions
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import attempt_ref
from idumb.app.ports.repository import NestedChange, Snapshot
from idumb.app.worktree import abandoned_clones, preconditions, task_base, tool_leftovers
from idumb.domain import contract as contracts
from idumb.domain import paths, wording
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import INTERRUPTED
from idumb.domain.runs.task_state import TaskState

INTERRUPTED_REFS = {INTERRUPTED: "interrupted"}
"""The last part of a checkpoint's ref, by status, if it is not `checkpoint`."""
FROZEN = "frozen"
"""The note with task, attempt and tree of the measured work: later changes are those of checks and people."""
KILLED = "idumb was killed during the attempt"


def record_interruption(context: RunContext, task: Task, why: str = KILLED, seconds: float = 0.0) -> None:
    """Record an attempt that was killed or interrupted: a checkpoint of the present, and what it touched.

    It does not count as an attempt. `seconds` is how long it took, 0 if unknown.
    """
    task_state = context.journal.state.tasks[task.id]
    if task_state.work.base is None or not (task_state.attempt.running or task_state.intended):
        return
    context.checks.end_processes()
    services = context.services
    ref = attempt_ref(services, context.run, task.id, task_state.attempt.number, INTERRUPTED_REFS[INTERRUPTED])
    declared = ledger.written_paths(task.files)
    here = task_base.made_in(context, task_state) == "here"
    if not here:
        abandoned_clones.keep_unfinished(context)
        _note_beside_clone(context, task)
    kept = None if here else services.history.kept(ref)
    if kept is None:
        reason = f"{task.id}, attempt {task_state.attempt.number}, interrupted"
        snapshot = services.trees.snapshot(ref, reason, ledger.named_paths(task.files))
    else:  # what was in the clone; nothing of it is in the user's tree
        snapshot = Snapshot(kept, services.trees.tree_at(kept), ref)
    changed = services.trees.changes(task_state.work.base, snapshot.tree) if here else ()
    covers = paths.cover(declared)
    head = services.history.head_tree()
    # What was committed since then is decided, and never restored.
    changed = tuple(c for c in changed if head is None or services.trees.entry(head, c.path) != c.new)
    names = (c.path for c in changed)
    counted = set(tool_leftovers.work_only(services, context.journal.state, names, snapshot.tree, declared))
    changed = tuple(c for c in changed if c.path in counted)
    tampered = preconditions.changed_guarded(services, context.journal.state)
    theirs = services.trees.repositories() if here else ()
    touched = [c.path for c in changed if covers(c.path) and paths.repository_of(c.path, theirs) is None]
    nested = task_base.nested_changes(context, task_state) if theirs else ()
    inner = tuple(change.path for change in nested)
    inner = tool_leftovers.work_only(services, context.journal.state, inner, snapshot.tree, declared)
    attributed = {*touched, *inner}
    others = [c.path for c in changed if c.path not in attributed and not paths.matches_any(c.path, paths.OWN_FILES)]
    others += inner
    counted_nested = [change for change in nested if change.path in inner]
    strays = _strays(context, task, changed, others, counted_nested) if others and here else ()
    others += _outside(context, task_state, snapshot.tree, head) if here else ()
    context.journal.write(
        context.journal.event(
            "attempt.interrupted",
            task.id,
            task_state.attempt.number,
            left=snapshot.tree,
            touched=touched,
            others=others,
            snapshot=snapshot.commit,
            ref=ref,
            reason=why,
            **({"guarded": list(tampered)} if tampered else {}),
            **({"deviations": [line.path for line in strays]} if strays else {}),
            **({"ledger": [line.as_dict() for line in strays]} if strays else {}),
            **questions.effect_payload(task),
        ),
        context.journal.event(
            "checkpoint.recorded",
            task.id,
            task_state.attempt.number,
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
    projections.checkpoints_again(services, context.journal.state, context.contract, [task.id])
    _note_others(context, task, others)


def _outside(context: RunContext, task_state: TaskState, present: str, head: str | None) -> tuple[str, ...]:
    """Return what changed outside the project since the attempt began and is not committed.

    A neighbour may have done that since, so it is named, and asks nothing.
    """
    trees = context.services.trees
    if task_state.work.snapshot is None:
        return ()
    try:
        changes = trees.changes_outside(trees.tree_at(task_state.work.snapshot), present)
    except (KeyError, ValueError):
        return ()  # the snapshot is gone: `idumb doctor` reports that
    return tuple(c.path for c in changes if head is None or trees.entry(head, c.path) != c.new)


def _strays(
    context: RunContext,
    task: Task,
    changed: Sequence[ledger.Change],
    others: Sequence[str],
    nested: Sequence[NestedChange],
) -> tuple[ledger.Line, ...]:
    """Return the lines of undeclared changes that the attempt may have made. A person decides about them.

    Nobody knows who changed a file while the attempt ran, or after it was killed. In the editor, a person works.
    """
    plan, task_state = context.plans[task.id], context.journal.state.tasks[task.id]
    if task.is_human or contracts.in_editor(plan, task, context.services.settings):
        return ()
    possible = set(others)
    frozen = task_state.work.left_tree if not task_state.attempt.running else None
    if context.notes.get(FROZEN, ())[:2] == (task.id, task_state.attempt.number):
        frozen = context.notes[FROZEN][2]
    if frozen is not None and task_state.work.base is not None:
        possible &= {change.path for change in context.services.trees.changes(task_state.work.base, frozen)}
    outside = [change for change in changed if change.path in possible]
    lines = ledger.compare(None, outside, context.protected(plan)).lines
    strays = [line for line in lines if line.status in (ledger.UNDECLARED, ledger.PROTECTED)]
    if frozen is None:
        strays += [
            ledger.Line(c.path, ledger.PROTECTED, ledger.MODIFIED, None, c.repository, within=c.repository, kept=c.kept)
            for c in nested
        ]
    return tuple(strays)


def _note_beside_clone(context: RunContext, task: Task) -> None:
    """Report what changed in the user's own tree since an attempt in a clone began: perhaps its builder did that."""
    from idumb.app.worktree import drift

    services, task_state = context.services, context.journal.state.tasks[task.id]
    if task_state.work.snapshot is None:
        return
    try:
        before = services.trees.tree_at(task_state.work.snapshot)
    except (KeyError, ValueError):
        return  # the snapshot is gone: `idumb doctor` reports that
    present = services.trees.scan(ledger.named_paths(task.files))
    drift.report_beside_clone(services, task.id, before, present, task_state.work.snapshot)


def _note_others(context: RunContext, task: Task, others: list[str]) -> None:
    """Report other changes since then. They may be the user's, so they stay."""
    if others:
        context.services.reporter.note(
            f"{task.id} was interrupted; also changed since then, left as it is: {wording.listed(others)}"
        )
