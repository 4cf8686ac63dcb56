"""Delivery: the only way of a program's work into the user's working tree, path by path.

A path is written only if it is as in the base of the work: what the user saved meanwhile is never overwritten.
"""

from __future__ import annotations

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import Conflict


def delivered(context: RunContext, attempt: Attempt) -> str:
    """Return the candidate with the bytes that its files have in the user's working tree."""
    return attempt.candidate if attempt.in_place else context.workspace.raw(attempt.candidate, attempt.changed)


def deliver(context: RunContext, attempt: Attempt) -> tuple[Conflict, ...]:
    """Write the work into the user's tree; return the paths that hold other bytes. Then nothing is written.

    Work that a person did is there already, except for what his hooks changed in its commit.
    """
    trees = context.services.trees
    if attempt.in_place:
        before = attempt.before_hooks or attempt.candidate
        by_hooks = [change.path for change in trees.changes(before, attempt.candidate)]
        return trees.restore(attempt.candidate, before, by_hooks) if by_hooks else ()
    changed = attempt.changed
    return trees.restore(delivered(context, attempt), context.workspace.raw(attempt.base, changed), changed)


def is_delivered(context: RunContext, attempt: Attempt) -> bool:
    """Return whether each path is in the user's tree as the work has it."""
    trees, changed = context.services.trees, attempt.changed
    present = trees.scan(changed)
    return trees.overlay(present, delivered(context, attempt), changed) == present


def take_back(context: RunContext, attempt: Attempt) -> None:
    """Restore what was delivered, unless it was committed or changed since."""
    if attempt.in_place:
        return
    trees, changed, work = context.services.trees, attempt.changed, delivered(context, attempt)
    present = trees.scan(changed)
    ours = [path for path in changed if trees.entry(present, path) == trees.entry(work, path)]
    trees.restore(context.workspace.raw(attempt.base, changed), work, context.services.history.uncommitted(ours))
