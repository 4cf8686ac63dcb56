"""Write paths as a tree has them, only where the present bytes are the expected ones.

Every path is checked before the first one is written, so an existing conflict leaves everything unchanged. A change
during the write, or a failing disk, can stop it with some paths written. Every path is reached from the root by folder
descriptors that follow no link, so nothing outside can be written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from idumb.app.ports.repository import Conflict
from idumb.domain import paths as path_rules
from idumb.domain.proof.ledger import Entry
from idumb.git.objects import tree_objects
from idumb.git.restore import path_state, write_back
from idumb.git.restore.displaced import Shelf
from idumb.git.restore.path_state import Present, Step

if TYPE_CHECKING:
    import pygit2


def restore(
    repository: pygit2.Repository,
    root: str,
    target: str,
    expected: str,
    paths: Iterable[str],
    *,
    force: bool,
    shelf: Shelf,
    guard: Callable[[], None],
) -> tuple[Conflict, ...]:
    """See `Trees.restore`. Raises ValueError for a path that idumb never writes, and the errors of `guard`."""
    target_entries = {path: tree_objects.entry(repository, target, path) for path in _checked(paths)}
    deletions = frozenset(path for path, want in target_entries.items() if want is None)
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        steps = [Step(path, want, path_state.look(top, path)) for path, want in target_entries.items()]
        conflicts = []
        for step in steps:
            before = tree_objects.entry(repository, expected, step.path)
            why = _conflict(step, before, deletions, force=force) or _blocked(top, step, deletions)
            if why is not None:
                conflicts.append(Conflict(step.path, why))
        if conflicts:
            return tuple(conflicts)
        write_back.force_done(root, steps)
        return write_back.apply(write_back.Writing(repository, root, top, shelf, guard), steps)
    finally:
        os.close(top)


def _checked(paths: Iterable[str]) -> list[str]:
    names = sorted(set(paths))
    for path in names:
        if path_rules.problem(path) or path_rules.protecting_rule(path, (), (path,)) is not None:
            message = f"idumb never restores {path!r}"
            raise ValueError(message)
    return names


def _conflict(step: Step, before: Entry | None, gone: frozenset[str], *, force: bool) -> str | None:
    present, want = step.present, step.want
    if tree_objects.SUBMODULE in {entry.mode for entry in (want, before) if entry is not None}:
        return "is a submodule, which idumb does not write"
    if present.in_the_way is not None:
        # Below a file or link there is nothing to remove; and this restore may remove what is in the way.
        if present.in_the_way in gone or want is None:
            return None
        return f"cannot be reached: {present.in_the_way}{'/ is a link now' if present.by_link else ''}"
    if present.is_odd:
        return "is no longer a file or a link"
    if present.entry == want or force or present.entry == before or (present.is_folder and before is None):
        return None
    return _why(present, before)


def _why(present: Present, before: Entry | None) -> str:
    if present.entry is None:
        return "was deleted since"
    if before is None:
        return "was created since"
    if present.status is not None and present.status.st_size == 0:
        return "is empty now; a crash may have cut it"
    if present.entry.oid == before.oid:
        return "has another mode than expected"
    return "was changed since"


def _blocked(top: int, step: Step, gone: frozenset[str]) -> str | None:
    """Return whether a folder is in the way of a file: it is, unless this restore empties it."""
    if not step.present.is_folder or step.want is None:
        return None
    rest = next((leaf for leaf in path_state.leaves(top, step.path) if leaf not in gone), None)
    return None if rest is None else f"is a folder now, which contains {rest}"
