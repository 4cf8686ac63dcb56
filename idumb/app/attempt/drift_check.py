"""What changed in the repository besides the files: during an attempt, and after one that a crash ended.

The user may have made any of it at the same time. So idumb keeps what would be lost, reports everything with the way
back, and restores only its own refs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from idumb.app.attempt import record
from idumb.app.core import next_actions
from idumb.app.core.run_context import Measured, Prepared, RunContext
from idumb.app.core.services import attempt_ref
from idumb.app.ports.repository import Head, RepositoryState
from idumb.app.worktree import drift, preconditions, staged_changes
from idumb.app.worktree.drift import MovedRef, short
from idumb.domain import paths, wording
from idumb.domain.agent import capabilities
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.runs.task_state import TaskState

_MANY = 300


def require(context: RunContext, attempt: Prepared) -> None:
    """Refuse if the repository is not as it was when the attempt began. What would be lost is kept first."""
    services, state, task, before = context.services, context.journal.state, attempt.task.id, attempt.before
    history, frozen = services.history, isinstance(attempt, Measured)
    # Reading idumb's refs is the slowest part of a long run; what checks do to them shows in the next attempt.
    after = drift.observe(history, before, own_refs=not (frozen and len(before.kept) > _MANY))
    changed = drift.compare(before, after, history.descends, branch=state.branch)
    lost = drift.restore_own(history, before, changed)
    gone = drift.keep_old(history, attempt.ref, changed.refs)
    preconditions.require_same_guarded(state, task, changed.guarded)
    preconditions.require_branch(services, state)
    if changed.own_refs or changed.loud:
        _report_staging(context, attempt)
    if changed.own_refs:
        raise _halted(context, attempt, _own_refusal(context, task, changed.own_refs, lost))
    quiet = [ref for ref in changed.refs if not ref.may_lose]
    if quiet:
        words = wording.listed(ref.words for ref in quiet)
        services.reporter.note(f"While {task} ran, other refs came or moved: {words}")
    if changed.loud:
        raise _halted(context, attempt, _refs_refusal(context, task, changed.loud, gone))
    _require_head(context, attempt, before, after)
    if frozen:  # checks may stage files too
        _report_staging(context, attempt)


def report_after_crash(context: RunContext, task: Task, known: TaskState) -> None:
    """Report what differs from the snapshot of an attempt that a crash ended, with the way back."""
    if known.work.snapshot is None or task.is_human or known.attempt.opened is not None:
        return
    services, history = context.services, context.services.history
    place = attempt_ref(services, context.run, task.id, known.attempt.number)
    try:
        after = history.state()
        head = Head(history.head_at(known.work.snapshot), after.head.branch)
        before = RepositoryState(head, after.guarded, services.trees.refs_at(known.work.snapshot))
        _report_new_commits(context, task, place, head.commit)
        changed = drift.compare(before, after, history.descends, branch=context.journal.state.branch)
        if changed.loud:
            gone = drift.keep_old(history, place, changed.loud)
            ways = [ref.back for ref in changed.loud[: wording.MOST_LISTED] if ref not in gone]
            words = f"Since {task.id} began, {drift.refs_words(changed.loud, gone)}"
            services.reporter.note(words + (f". As they were before: {'; '.join(ways)}" if ways else ""))
        staged_changes.tell(context, task, known.attempt.number, known.work.snapshot)
    except (Refusal, KeyError, ValueError):
        return  # the snapshot is gone: `idumb doctor` reports that, and the run can continue


def _report_new_commits(context: RunContext, task: Task, place: str, was: str | None) -> None:
    history = context.services.history
    now = history.head().commit
    if now in (was, None):
        return
    if now in {c for c, trailers in history.trailers_since(was) if trailers.get("Idumb-Run") == context.run}:
        return
    history.keep_ref(f"{place}/meanwhile/{now[:16]}", now)
    context.services.reporter.note(
        f"Since {task.id} began, HEAD went from {was or 'no commit'} to {now}, and idumb did not do that:"
        f" git log --stat {f'{was}..' if was else ''}{now}"
    )


def _report_staging(context: RunContext, attempt: Prepared) -> None:
    if _program_works_here(context, attempt):
        staged_changes.tell(context, attempt.task, attempt.number, attempt.snapshot.commit, attempt.accepted_paths)


def _program_works_here(context: RunContext, attempt: Prepared) -> bool:
    """Return whether a program works in the user's own tree. People may commit and stage there what they like."""
    known = context.journal.state.tasks[attempt.task.id]
    if (
        context.workspace.kind != "here"
        or attempt.task.is_human
        or known.attempt.opened is not None
        or attempt.awaits_verdict
    ):
        return False
    return not capabilities(context.agents.get(attempt.builder)).asks_person


def _halted(context: RunContext, attempt: Prepared, refusal: Refusal) -> Refusal:
    """Record why the attempt is over, and return the refusal that stops the run."""
    if context.journal.state.tasks[attempt.task.id].attempt.opened is None:
        record.record_interruption(context, attempt.task, refusal.message)
    return refusal


def _own_refusal(context: RunContext, task: str, changed: Sequence[str], lost: Sequence[str]) -> Refusal:
    count = f"{len(changed)} ref{'s' * (len(changed) != 1)}"
    words = f"While {task} ran, {count} of idumb's own were deleted or moved: {wording.listed(changed)}. "
    words += f"Their commits are gone too: {wording.listed(lost)}" if lost else "idumb has restored them."
    way = next_actions.command(context.journal.state)
    hint = f"idumb doctor, then {way}" if lost else f"See what the builder did, then {way}"
    details = {"go_on": way, "task": task, "refs": list(changed), "lost": list(lost)}
    return Refusal("git.own-refs-changed", words, hint=hint, details=details)


def _refs_refusal(context: RunContext, task: str, moved: Sequence[MovedRef], gone: Sequence[MovedRef]) -> Refusal:
    deleted = all(ref.new is None for ref in moved)
    way = next_actions.command(context.journal.state)
    back = "; ".join(ref.back for ref in moved[: wording.MOST_LISTED])
    return Refusal(
        "git.refs-deleted" if deleted else "git.refs-moved",
        f"While {task} ran, {drift.refs_words(moved, [ref for ref in gone if ref in moved])}",
        hint=f"{back}  (restores them). Then {way}",
        details={
            "go_on": way,
            "back": back,
            "task": task,
            "refs": {ref.name: ref.old for ref in moved},
            "moved": [{"ref": ref.name, "old": ref.old, "new": ref.new, "back": ref.back} for ref in moved],
        },
    )


def _require_head(context: RunContext, attempt: Prepared, before: RepositoryState, after: RepositoryState) -> None:
    """Refuse if HEAD moved, except forward where a person works, or by commits of declared files only."""
    was, now, task = before.head.commit, after.head.commit, attempt.task.id
    if was == now:
        return
    history, way = context.services.history, next_actions.command(context.journal.state)
    if was is not None and not history.descends(was):
        drift.keep(history, attempt.ref, was)
        raise Refusal(
            "git.branch-rewritten",
            f"While {task} ran, HEAD went from {was} to {now or 'no commit'}, which does not contain it.",
            hint=f"git reflog shows what happened; git branch NAME {was} keeps it. Then {way}",
            details={"go_on": way, "task": task, "was": was, "is": now},
        )
    if now is None or not _program_works_here(context, attempt):
        return
    changed = [c.path for c in context.services.trees.changes(history.tree_of(was), history.tree_of(now))]
    covers = paths.cover(attempt.written)
    strays = [path for path in changed if not covers(path)]
    if strays:
        # Recorded after the user decided about the commits: what stays committed is never put back.
        raise _committed(context, attempt, (was, now), changed, strays)
    words = f"While {task} ran, commits of its declared files were made: {short(was)} -> {short(now)}"
    context.services.reporter.note(words)


def _committed(
    context: RunContext, attempt: Prepared, heads: tuple[str | None, str], changed: list[str], strays: list[str]
) -> Refusal:
    """Return the refusal that names the commits on the branch, and how to restore the branch and the index."""
    services, state, task = context.services, context.journal.state, attempt.task
    was, now = heads
    history, way = services.history, next_actions.command(state)
    drift.keep(history, attempt.ref, now)
    name = "--no-deref HEAD" if state.branch is None else shlex.quote(f"refs/heads/{state.branch}")
    back = f"git update-ref {name} {was} {now}" if was else f"git update-ref -d {name} {now}"
    index = f"; {history.index_command(attempt.snapshot.commit)}"
    added = f", with {wording.listed(strays)}, which {task.id} does not declare"
    return Refusal(
        "git.committed-meanwhile",
        f"While {task.id} ran, commits were made on {state.branch or 'HEAD'}: {short(was)} -> {short(now)}{added}.",
        hint=f"git log --stat {f'{was}..' if was else ''}{now} shows them. If they may stay:"
        f" {way} (idumb accept {task.id} --why REASON, if that says that nothing changed)."
        f" Else first, in the top folder (no file changes): {back}{index}."
        " With `git.commit: builder` agents commit in a clone, and idumb judges what they commit.",
        details={
            "go_on": way,
            "task": task.id,
            "was": was,
            "is": now,
            "paths": changed,
            "undeclared": strays,
            "back": [back, index.removeprefix("; ")],
            "undo": f"{back}{index}",
        },
    )
