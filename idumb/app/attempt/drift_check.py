"""What happened to the user's refs, branch and index, and to idumb's own refs, while an attempt was made.

Nothing of it can be told from what the user does at the same time. So nothing is lost, everything is named, and only
idumb's own refs are put back.
"""

from __future__ import annotations

import shlex

from idumb.app.attempt import build, record
from idumb.app.core import next_actions
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import attempt_ref
from idumb.app.ports.agents import capabilities
from idumb.app.ports.repository import RepositoryState
from idumb.app.worktree import moved_refs, preconditions, staged_changes
from idumb.app.worktree.moved_refs import Moved, short
from idumb.domain import paths, wording
from idumb.domain.errors import Refusal
from idumb.domain.proof import ledger

_MANY = 300


def require(bench: Bench, attempt: Attempt) -> None:
    """Refusal where the repository is not as it was; what was lost is kept before anything is said."""
    before = attempt.standing
    if before is None:
        return
    services, state, task = bench.services, bench.journal.state, attempt.task.id
    after = services.history.state()
    # In a long run this is the dearest look, and what checks do to them is seen in the next attempt.
    again = attempt.candidate is not None and len(before.kept) > _MANY
    own, gone_for_good = ([], []) if again else moved_refs.own_again(services.history, before)
    found = moved_refs.moved(before.refs, after.refs, state.branch)
    held = attempt_ref(services, bench.run, task, attempt.number)
    lost = [one for one in found if not moved_refs.keep(services.history, held, one)]
    preconditions.require_same_guarded(state, task, before.guarded, after.guarded)
    preconditions.require_branch(services, state)
    loud = [one for one in found if moved_refs.is_loud(services.history, one)]
    if own or loud:
        _tell_staging(bench, attempt)
    if own:
        raise _halted(bench, attempt, _own_refusal(bench, task, own, gone_for_good))
    _tell(bench, task, [one for one in found if one not in loud], before, after)
    if loud:
        raise _halted(bench, attempt, _refs_refusal(bench, task, loud, lost))
    _require_head(bench, attempt, before, after)
    if attempt.candidate is not None:  # what checks stage is seen too
        _tell_staging(bench, attempt)


def _tell_staging(bench: Bench, attempt: Attempt) -> None:
    if attempt.snapshot is not None and _watches(bench, attempt):
        staged_changes.tell(bench, attempt.task, attempt.number, attempt.snapshot.commit, attempt.accepted_paths)


def _watches(bench: Bench, attempt: Attempt) -> bool:
    """Whether a program works in the user's own tree; people commit and stage there what they like."""
    known = bench.journal.state.tasks[attempt.task.id]
    if bench.workspace.kind != "here" or attempt.task.is_human or known.attempt.opened is not None or attempt.built:
        return False
    return not capabilities(bench.agents.get(build.binding_name(bench, attempt))).asks_person


def _halted(bench: Bench, attempt: Attempt, refusal: Refusal) -> Refusal:
    """The attempt is over, and the log says why; the run stops until a person has looked."""
    known = bench.journal.state.tasks[attempt.task.id]
    if known.attempt.opened is None:
        record.record_interruption(bench, attempt.task, refusal.message)
    return refusal


def _own_refusal(bench: Bench, task: str, changed: list[str], lost: list[str]) -> Refusal:
    count = f"{len(changed)} ref{'s' * (len(changed) != 1)}"
    words = f"While {task} ran, {count} of idumb's own were deleted or moved: {wording.listed(changed)}. "
    words += f"Their commits are gone too: {wording.listed(lost)}" if lost else "They are as they were again."
    way = next_actions.command(bench.journal.state)
    hint = f"idumb doctor, then {way}" if lost else f"Look at what the builder did, then {way}"
    return Refusal(
        "git.own-refs-changed", words, hint=hint, details={"go_on": way, "task": task, "refs": changed, "lost": lost}
    )


def _tell(bench: Bench, task: str, quiet: list[Moved], before: RepositoryState, after: RepositoryState) -> None:
    if quiet and before.refs != after.refs:
        words = wording.listed(one.words for one in quiet)
        bench.services.reporter.note(f"While {task} ran, other refs came or moved: {words}")


def _refs_refusal(bench: Bench, task: str, loud: list[Moved], lost: list[Moved]) -> Refusal:
    deleted = all(one.new is None for one in loud)
    what = "deleted" if deleted else "moved"
    gone = [one for one in lost if one in loud]
    words = f"While {task} ran, refs were {what}: {wording.listed(one.words for one in loud)}"
    words += f". What they named is gone too: {wording.listed(one.name for one in gone)}" if gone else ""
    back = "; ".join(one.back for one in loud[: wording.MOST_LISTED])
    return Refusal(
        "git.refs-deleted" if deleted else "git.refs-moved",
        words,
        hint=f"{back}  (brings them back). Then {next_actions.command(bench.journal.state)}",
        details={
            "go_on": next_actions.command(bench.journal.state),
            "back": back,
            "task": task,
            "refs": {one.name: one.old for one in loud},
            "moved": [{"ref": one.name, "old": one.old, "new": one.new, "back": one.back} for one in loud],
        },
    )


def _require_head(bench: Bench, attempt: Attempt, before: RepositoryState, after: RepositoryState) -> None:
    """HEAD is where it was; where a person works it may go forward, and nobody takes it back."""
    was, now, task = before.head.commit, after.head.commit, attempt.task.id
    if was == now:
        return
    history = bench.services.history
    if was is not None and not history.descends(was):
        moved_refs.hold(history, attempt_ref(bench.services, bench.run, task, attempt.number), was)
        raise Refusal(
            "git.branch-rewritten",
            f"While {task} ran, HEAD went from {was} to {now or 'no commit'}, which does not contain it.",
            hint=f"git reflog shows what happened; git branch NAME {was} keeps it."
            f" Then {next_actions.command(bench.journal.state)}",
            details={"go_on": next_actions.command(bench.journal.state), "task": task, "was": was, "is": now},
        )
    if now is None or not _watches(bench, attempt):
        return
    changed = [c.path for c in bench.services.trees.changes(history.tree_of(was), history.tree_of(now))]
    covers = paths.cover(ledger.written_paths(attempt.task.files))
    strays = [path for path in changed if not covers(path)]
    if strays:
        # Recorded when the user has said what becomes of the commits: what stays committed is never put back.
        raise _committed(bench, attempt, (was, now), changed, strays)
    words = f"While {task} ran, commits of its declared files were made: {short(was)} -> {short(now)}"
    bench.services.reporter.note(words)


def _committed(
    bench: Bench, attempt: Attempt, heads: tuple[str | None, str], changed: list[str], strays: list[str]
) -> Refusal:
    """What stands on the branch now, and how the branch and the index become what they were."""
    services, state, task = bench.services, bench.journal.state, attempt.task
    was, now = heads
    history = services.history
    moved_refs.hold(history, attempt_ref(services, bench.run, task.id, attempt.number), now)
    name = "--no-deref HEAD" if state.branch is None else shlex.quote(f"refs/heads/{state.branch}")
    back = f"git update-ref {name} {was} {now}" if was else f"git update-ref -d {name} {now}"
    index = f"; {history.index_command(attempt.snapshot.commit)}" if attempt.snapshot else ""
    told = f", with {wording.listed(strays)}, which {task.id} does not declare"
    return Refusal(
        "git.committed-meanwhile",
        f"While {task.id} ran, commits were made on {state.branch or 'HEAD'}: {short(was)} -> {short(now)}{told}.",
        hint=f"git log --stat {f'{was}..' if was else ''}{now} shows them. Where they may stay:"
        f" {next_actions.command(state)} (idumb accept {task.id} --why REASON, if that says that nothing changed)."
        f" Else first, in the top folder (no file changes): {back}{index}."
        " With `git.commit: builder` agents commit in a clone, and what they commit is judged.",
        details={
            "go_on": next_actions.command(state),
            "task": task.id,
            "was": was,
            "is": now,
            "paths": changed,
            "undeclared": strays,
            "back": [part for part in (back, index.removeprefix("; ")) if part],
            "undo": f"{back}{index}",
        },
    )
