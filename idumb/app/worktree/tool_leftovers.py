"""Keeps files that well-known tools left out of the work: of ledger and commit, and of what checks must not change.

Snapshots keep them. A path is left out if the table names it, the project does not track it, and no task declares it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, Trees
from idumb.domain import project_files
from idumb.domain.paths import is_below
from idumb.domain.project_files import Match
from idumb.domain.proof.ledger import Change
from idumb.domain.runs.run import RunState

Leftover = Callable[[str], Match | None]


def matcher(services: Services, trees: Trees, state: RunState, tree: str, declared: Iterable[str] = ()) -> Leftover:
    """Return a function that says which leftover of a tool a path belongs to; None for a path that counts.

    `tree` has what must exist beside or inside a leftover. A path counts if HEAD or a task of the run has a file in the
    same place, or if `declared` names it.
    """
    head = services.history.head_tree()
    touched = [path for task in state.tasks.values() for path in (*task.work.touched, *task.work.accepted_paths)]
    claims = tuple(claim for claim in declared if project_files.names_leftover(claim))

    @functools.cache
    def is_tracked(root: str) -> bool:
        name = root.rstrip("/")
        in_head = trees.entry(head, name) is not None or trees.is_folder(head, name)
        return in_head or any(is_below(path, name) for path in touched)

    @functools.cache
    def is_complete(match: Match) -> bool:
        return all(trees.entry(tree, path) is not None for path in (match.beside, match.inside) if path)

    def leftover(path: str) -> Match | None:
        if project_files.declares_leftover(path, claims):
            return None
        in_tracked = False
        for match in filter(is_complete, project_files.leftovers(path)):
            if not is_tracked(match.root):
                # A project that tracks some files of a folder may mean each file there, not folders of other tools.
                return None if in_tracked and not match.root.endswith("/") else match
            in_tracked = True
        return None

    return leftover


def without_leftovers(
    services: Services, state: RunState, paths: Iterable[str], declared: Iterable[str]
) -> tuple[str, ...]:
    """Return the paths without leftovers of tools in the user's working tree."""
    names, trees = tuple(paths), services.trees
    if not any(map(project_files.LEFTOVER.search, names)):
        return names
    leftover = matcher(services, trees, state, trees.scan(), declared)
    return tuple(path for path in names if leftover(path) is None)


def of_attempt(context: RunContext, attempt: Attempt, tree: str) -> Leftover:
    """Return the matcher for the changes of an attempt. What a person protects by its name counts as work, too."""
    rules = (*attempt.plan.scope.protected, *context.services.settings.protected)
    declared = (*attempt.written, *attempt.accepted_paths, *rules)
    return matcher(context.services, context.work, context.state, tree, declared)


def split(
    context: RunContext, attempt: Attempt, changes: Sequence[Change], tree: str
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return the changes without leftovers of tools, and the leftovers."""
    leftover = of_attempt(context, attempt, tree)
    matched = [(change, leftover(change.path)) for change in changes]
    work = tuple(change for change, match in matched if match is None)
    return work, tuple(dict.fromkeys(match.root for _, match in matched if match is not None))
