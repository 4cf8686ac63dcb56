"""Delivery: the only way of a program's work into the user's working tree, path by path.

A path is written only if it is as in the base of the work: what the user saved meanwhile is never overwritten, unless
he says so.
"""

from __future__ import annotations

import dataclasses

from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import kept_at
from idumb.app.ports.repository import Conflict
from idumb.app.worktree import kept_work
from idumb.domain import wording
from idumb.domain.action import Decision


def delivered(context: RunContext, attempt: Attempt) -> str:
    """Return the candidate with the bytes that its files have in the user's working tree."""
    return attempt.candidate if attempt.in_place else context.workspace.raw(attempt.candidate, attempt.changed)


def _before(context: RunContext, attempt: Attempt) -> str:
    """Return the tree as it must be in the user's working tree before the delivery, with its bytes there.

    Work that a person did is there already, except for what his hooks changed in its commit.
    """
    if attempt.in_place:
        return attempt.before_hooks or attempt.candidate
    return context.workspace.raw(attempt.base, attempt.changed, [attempt.snapshot.tree])


def deliver(context: RunContext, attempt: Attempt) -> tuple[Conflict, ...]:
    """Write the work into the user's tree; return the paths that hold other bytes. Then nothing is written."""
    trees, before = context.services.trees, _before(context, attempt)
    changed = [path for path in attempt.changed if path not in attempt.yours]
    if attempt.in_place:
        changed = [change.path for change in trees.changes(before, attempt.candidate)]
        return trees.restore(attempt.candidate, before, changed) if changed else ()
    return kept_work.put(context.services, delivered(context, attempt), before, attempt.base, changed)


def others(context: RunContext, attempt: Attempt) -> tuple[str, ...]:
    """Return the paths that the user's tree has neither as the work has them nor as they were before delivery."""
    entry, present = context.services.trees.entry, context.services.trees.scan(attempt.changed)
    known, paths = (_before(context, attempt), delivered(context, attempt)), attempt.changed
    found = [p for p in paths if p not in attempt.yours and entry(present, p) not in [entry(t, p) for t in known]]
    same = () if attempt.in_place else kept_work.unmodified(context.services, attempt.base, found)
    return tuple(path for path in found if path not in same)


def take_back(context: RunContext, attempt: Attempt) -> None:
    """Restore what was delivered, unless it was committed or changed since."""
    if attempt.in_place:
        return
    trees, work = context.services.trees, delivered(context, attempt)
    if attempt.proven is not None and attempt.message:
        context.services.history.unfollow(
            context.work.committed(attempt.judged_on, attempt.candidate, attempt.committed)
        )
    present = trees.scan(attempt.changed)
    ours = [p for p in attempt.changed if p not in attempt.yours and trees.entry(present, p) == trees.entry(work, p)]
    trees.restore(_before(context, attempt), work, context.services.history.uncommitted(ours))


def question(attempt: Attempt) -> Decision:
    """Return the question whose version of the conflicting files counts."""
    files, number = attempt.conflicts, attempt.number
    return questions.about(questions.DELIVERY, attempt.task, number, files, paths=wording.listed(files))


def with_version_of_user(context: RunContext, attempt: Attempt, paths: tuple[str, ...]) -> Attempt:
    """Return the attempt with the user's version of these paths, of which nothing is proven yet."""
    services = context.services
    theirs = services.trees.committed(services.history.head().commit, services.trees.scan(paths), paths)
    candidate = context.work.overlay(attempt.candidate, theirs, paths)
    return dataclasses.replace(attempt, candidate=candidate, yours=(*attempt.yours, *paths), evidence=(), proven=None)


def over_version_of_user(context: RunContext, attempt: Attempt, paths: tuple[str, ...]) -> Attempt:
    """Keep the user's version of these paths in a snapshot, and return the attempt that is written over them."""
    services, trees = context.services, context.services.trees
    ref = f"{attempt.ref}/yours-{trees.scan(paths)[:12]}"  # there may be a second conflict
    kept = trees.snapshot(ref, f"your version, before {attempt.task.id} was delivered", paths)
    for path in paths:
        services.reporter.note(f"Your version of {path} is kept: git show {kept_at(services, kept.commit[:12], path)}")
    return dataclasses.replace(attempt, base=trees.overlay(attempt.base, kept.tree, paths))
