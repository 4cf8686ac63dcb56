"""The paths that a restore must not overwrite, and the refusal that says how to keep both versions."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Sequence

from msgspec import Struct

from idumb.app.core.services import Services, from_start, from_top, kept_at
from idumb.app.ports import Conflict, Snapshot
from idumb.domain import paths
from idumb.domain.errors import Refusal
from idumb.domain.proof.ledger import Entry

_STAGED = "has other staged content"
_CHANGED_AND_STAGED = "was changed and staged"
_PATTERN = frozenset("*?[\\")
_PLAIN, _PROGRAM, _LINK = 0o100644, 0o100755, 0o120000


class Target(Struct, frozen=True):
    """What to restore: each of `paths` becomes as in the tree `target` if it is now as in the tree `expected`.

    `committed` is the tree of what the commit has, if uncommitted work comes back on top of it.
    """

    paths: tuple[str, ...]
    target: str
    expected: str
    tasks: tuple[str, ...]
    committed: str | None = None


def committable(services: Services, target: Target, present: str) -> str:
    """Return the tree for the commit. Where the user has something in the way of a file now, it is as the target."""
    if target.committed is None:
        return target.target
    trees = services.trees

    def is_blocked(path: str) -> bool:
        return trees.is_folder(present, path) or any(trees.entry(present, at) for at in paths.folders_above([path]))

    return trees.overlay(target.committed, target.target, filter(is_blocked, target.paths))


def _in_the_way(services: Services, path: str) -> str | None:
    """Return what is where a file is to be and cannot be replaced by one, perhaps ignored by git; None if nothing is.

    It is a file or link above it, or a folder, pipe, socket or device in its place.
    """
    for at in (*sorted(paths.folders_above([path])), path):
        found = services.files.status(at)
        if found is None:
            return None
        if at == path:
            return None if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode) else path
        if not stat.S_ISDIR(found.st_mode):
            return at
    return None


def find(services: Services, before: Snapshot, target: Target, *, commits: bool) -> list[Conflict]:
    """Return the paths that the user changed after the tasks, or where he put something in the way of a file.

    With `commits`, also those with other staged content.
    """
    trees, entry = services.trees, services.trees.entry
    states = (target.expected, target.target)
    # Staged content that neither the tasks left nor the restore writes: its commit would replace it.
    index = services.history.staged(target.paths) if commits else {}
    staged = {p: e for p, e in index.items() if e is not None and e not in [entry(t, p) for t in states]}
    # If it is not the content of the file, it exists nowhere else. With a filter, equal content has other bytes.
    other = [p for p, have in staged.items() if have != entry(before.tree, p)]
    cleaned = trees.committed(services.history.head().commit, before.tree, other)
    alone = [p for p in other if staged[p] != entry(cleaned, p)]
    changed = trees.differing(before.tree, states, target.paths)
    conflicts = [Conflict(p, _CHANGED_AND_STAGED if p in staged and p not in alone else "was changed") for p in changed]
    # The snapshot does not have all that can be in the way: git may ignore it, or be unable to hold it.
    blocked = (c for c in trees.conflicts(target.target, before.tree, target.paths) if c.path not in changed)
    return [*conflicts, *blocked, *(Conflict(p, _STAGED) for p in alone)]


def refusal(services: Services, target: Target, before: Snapshot, conflicts: Sequence[Conflict]) -> Refusal:
    """Build the refusal, with commands that keep both versions of each file."""
    listed = ", ".join(f"{c.path} ({c.why})" for c in conflicts)
    commands = [_resolve_commands(services, target, before, conflict) for conflict in conflicts]
    keeps = [keep for keep, _ in commands]
    return Refusal(
        "rollback.conflict",
        f"Nothing was restored, because these files changed after the tasks: {listed}",
        hint="Save your version and restore that of the tasks with the listed commands, then run the command again",
        details={
            "paths": [c.path for c in conflicts],
            "kept": before.commit,
            "expected": target.expected,
            "files": [
                {"path": c.path, "keep": None if keep in keeps[:at] else keep or None, "put_back": back}
                for at, (c, (keep, back)) in enumerate(zip(conflicts, commands, strict=True))
            ],
        },
    )


def _unstage(path: str) -> str:
    """Return the command that restores HEAD's entry. A name can be a pattern, which would also reset other files."""
    is_pattern = path.startswith(":") or not _PATTERN.isdisjoint(path)
    return f"git reset -q -- {shlex.quote(f':(literal){path}' if is_pattern else path)}"


def _resolve_commands(services: Services, target: Target, before: Snapshot, conflict: Conflict) -> tuple[str, str]:
    """Return commands that save the user's version beside the file ("" without one) and restore the tasks' version."""
    if conflict.why == _STAGED:
        staged, place = f":{from_top(services, conflict.path)}", from_start(services, conflict.path)
        return f"git show {shlex.quote(staged)} > {shlex.quote(f'{place}.staged')}", _unstage(place)
    keep, back = _file_commands(services, target, before, conflict.path)
    if conflict.why != _CHANGED_AND_STAGED:
        return keep, back
    return keep, f"{back} && {_unstage(from_start(services, conflict.path))}"


def _file_commands(services: Services, target: Target, before: Snapshot, path: str) -> tuple[str, str]:
    """Return commands that save the present file and restore the tasks' version."""
    saved_at, place = kept_at(services, before.commit, path), from_start(services, path)
    mine = services.trees.entry(before.tree, path)
    theirs = services.trees.entry(target.expected, path)
    keep = f"git show {shlex.quote(saved_at)} > {shlex.quote(f'{place}.mine')}" if mine is not None else ""
    if (in_the_way := _in_the_way(services, path)) is not None:
        aside = from_start(services, in_the_way)
        keep = f"mv {shlex.quote(aside)} {shlex.quote(f'{aside}.mine')}"
    if theirs is None:
        return keep, f"rm -f {shlex.quote(place)}"  # the tasks left no such file
    return keep, _write_command(theirs, place, present=mine)


def _write_command(entry: Entry, path: str, *, present: Entry | None) -> str:
    """Return a shell command that writes a file or link with its mode."""
    place = shlex.quote(path)
    if entry.mode == _LINK:
        return f'ln -sfn -- "$(git show {entry.oid})" {place}'
    away = f"rm {place} && " if present is not None and present.mode == _LINK else ""
    folder = f"mkdir -p {shlex.quote(path.rpartition('/')[0])} && " if present is None and "/" in path else ""
    bits = "" if entry.mode == (present.mode if present else _PLAIN) else ("+x" if entry.mode == _PROGRAM else "-x")
    return f"{away}{folder}git show {entry.oid} > {place}" + (f" && chmod {bits} {place}" if bits else "")
