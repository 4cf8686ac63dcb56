"""Delivery: the only way of a program's work into the user's working tree, path by path.

A path is written only if it is as in the base of the work: what the user saved meanwhile is never overwritten, unless
he says so. What a failed attempt left is in its checkpoint only, until a person takes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, kept_at
from idumb.app.ports import Conflict
from idumb.domain import wording
from idumb.domain.action import Action, Decision
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import RunState, TaskState


def delivered(context: RunContext, attempt: Attempt) -> str:
    """Return the candidate with the bytes that its files have in the user's working tree."""
    return attempt.candidate if attempt.in_place else context.workspace.checked_out(attempt.candidate, attempt.changed)


def _before(context: RunContext, attempt: Attempt) -> str:
    """Return the tree as it must be in the user's working tree before the delivery, with its bytes there.

    Work that a person did is there already, except for what his hooks changed in its commit.
    """
    if attempt.in_place:
        return attempt.before_hooks or attempt.candidate
    return context.workspace.checked_out(attempt.base, attempt.changed, [attempt.snapshot.tree])


def deliver(context: RunContext, attempt: Attempt) -> tuple[Conflict, ...]:
    """Write the work into the user's tree; return the paths that hold other bytes. Then nothing is written."""
    trees, before = context.services.trees, _before(context, attempt)
    if attempt.in_place:
        changed = [change.path for change in trees.changes(before, attempt.candidate)]
        return trees.restore(attempt.candidate, before, changed)
    return write_unless_changed(context.services, delivered(context, attempt), before, attempt.base, attempt.to_deliver)


def conflicting(context: RunContext, attempt: Attempt) -> tuple[str, ...]:
    """Return the paths that the user's tree has neither as the work has them nor as they were before delivery."""
    trees, known = context.services.trees, (_before(context, attempt), delivered(context, attempt))
    found = trees.differing(trees.scan(attempt.changed), known, attempt.to_deliver)
    same = () if attempt.in_place else unmodified(context.services, attempt.base, found)
    return tuple(path for path in found if path not in same)


def take_back(context: RunContext, attempt: Attempt) -> None:
    """Restore what was delivered, unless it was committed or changed since."""
    if attempt.in_place:
        return
    trees, work = context.services.trees, delivered(context, attempt)
    if attempt.message:
        committed = context.work.committed(attempt.judged_on, attempt.candidate, attempt.committed)
        context.services.history.unfollow(committed)
    present = trees.scan(attempt.changed)
    ours = [path for path in attempt.to_deliver if trees.entry(present, path) == trees.entry(work, path)]
    trees.restore(_before(context, attempt), work, context.services.history.uncommitted(ours))


def question(run: RunState, attempt: Attempt, files: Sequence[str]) -> Decision:
    """Return the question whose version of these files counts. An answer serves the files that its question names."""
    asked = questions.about(questions.DELIVERY, attempt.task, attempt.number, files, paths=wording.listed(files))
    return questions.asked_before(run, asked)


def with_version_of_user(context: RunContext, attempt: Attempt, paths: tuple[str, ...]) -> Attempt:
    """Return the attempt with the user's version of these paths, of which nothing is proven yet."""
    services = context.services
    theirs = services.trees.committed(services.history.head().commit, services.trees.scan(paths), paths)
    candidate = context.work.overlay(attempt.candidate, theirs, paths)
    return replace(attempt, candidate=candidate, left_to_user=(*attempt.left_to_user, *paths), evidence=(), proven=None)


def over_version_of_user(context: RunContext, attempt: Attempt, paths: tuple[str, ...]) -> Attempt:
    """Keep the user's version of these paths in a snapshot, and return the attempt that is written over them."""
    services, trees = context.services, context.services.trees
    ref = f"{attempt.ref}/yours-{trees.scan(paths)[:12]}"  # there may be a second conflict
    kept = trees.snapshot(ref, f"your version, before {attempt.task.id} was delivered", paths)
    for path in paths:
        services.reporter.note(f"Your version of {path} is kept: git show {kept_at(services, kept.commit[:12], path)}")
    return replace(attempt, base=trees.overlay(attempt.base, kept.tree, paths))


# What a failed attempt of a program left


def kept_files(task: TaskState, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths to deliver; none if a person did the work, which is in his tree already."""
    if task.checkpoint is None or task.work.base is None or task.work.touched:
        return ()
    return tuple(path for path in task.checkpoint.files if path not in without)


def deliver_kept(services: Services, task: TaskState, chosen: Sequence[str]) -> None:
    """Write these paths, or none: Refusal `task.changed-since` if one is not as in the base of the work."""
    conflicts = _write_kept(services, task, chosen)
    if conflicts:
        raise _changed(task.id, [conflict.path for conflict in conflicts])


def deliver_kept_beside(services: Services, task: TaskState, chosen: Sequence[str]) -> tuple[str, ...]:
    """Write these paths, except those that the user changed since. Return the paths that are not written."""
    yours = tuple(conflict.path for conflict in _write_kept(services, task, chosen))
    if yours:
        deliver_kept(services, task, [path for path in chosen if path not in yours])
    return yours


def _write_kept(services: Services, task: TaskState, chosen: Sequence[str]) -> tuple[Conflict, ...]:
    if not chosen or task.checkpoint is None or task.work.base is None:
        return ()
    shown, base = services.open_checkout().checked_out, task.work.base
    return write_unless_changed(services, shown(task.checkpoint.tree, chosen), shown(base, chosen), base, chosen)


def before_taking(services: Services, task: TaskState, snapshot: str) -> str:
    """Return the tree to restore if a person gives up a task: its base, with what he had changed before he took it.

    `snapshot` has what he took, and his own changes.
    """
    base, taken = task.work.base or "", kept_files(task)
    if task.checkpoint is None or not taken:
        return base
    shown = services.open_checkout().checked_out
    before, after = shown(base, taken), shown(task.checkpoint.tree, taken)
    own = services.trees.differing(snapshot, (before, after), taken)
    return services.trees.overlay(before, snapshot, own)


def _changed(task: str, paths: list[str]) -> Refusal:
    return Refusal(
        "task.changed-since",
        f"{task} was built from other files: these have changed here since: {wording.listed(paths)}; you can keep your "
        "version of them and take the rest, which idumb submit then judges",
        hint=Action.of("take", task),
        details={"paths": paths, "task": task},
    )


# Writing into the user's tree


def write_unless_changed(
    services: Services, work: str, before: str, base: str, paths: Sequence[str]
) -> tuple[Conflict, ...]:
    """Write files of the tree `work`. Return those that the user changed since; then none is written.

    `before` has the bytes that git gives the files of `base`.
    """
    trees = services.trees
    conflicts = trees.restore(work, before, paths)
    same = unmodified(services, base, [conflict.path for conflict in conflicts])
    if not same:
        return conflicts
    return trees.restore(work, trees.overlay(before, trees.scan(same), same), paths)


def unmodified(services: Services, base: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that git calls unmodified, whatever bytes a line ending, a filter or a mode gives them."""
    if not paths:
        return ()
    trees = services.trees
    cleaned = trees.committed(services.history.head().commit, trees.scan(paths), paths)
    return tuple(path for path in paths if trees.entry(cleaned, path) == trees.entry(base, path))
