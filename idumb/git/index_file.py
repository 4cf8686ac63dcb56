"""The user's index: its bytes and entries, and how entries are set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, open_repository
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.system import clock

if TYPE_CHECKING:
    import pygit2

INDEX = "index"
"""Its name in git's folder, and in the commit of a snapshot."""
_ON_A_LINE = 200
_PAUSE, _PATIENCE = 0.1, 30.0  # seconds between two looks at a lock, and of waiting for it
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, INDEX)


def read(place: Repository) -> bytes | None:
    """Return the bytes; None if there is no file, as before the first `git add`."""
    try:
        with open(path_of(place), "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def staged(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> dict[str, Entry | None]:
    """Return the index entries of these paths that differ from HEAD; None for a path that only HEAD has.

    An announced path (`git add --intent-to-add`) has no bytes to lose.
    """
    tree = _head_tree(repository)
    return {
        path: have
        for path, have in entries(place.root, paths).items()
        if have != tree_objects.entry(repository, tree, path) and (have is None or have.oid != EMPTY)
    }


def _head_tree(repository: pygit2.Repository) -> str:
    return tree_objects.tree_of(repository, open_repository.head_of(repository))


def entries(root: str, paths: Iterable[str], variables: Mapping[str, str] | None = None) -> dict[str, Entry | None]:
    """Return the index entries of these paths; None for a path without one. `variables` may name another index."""
    paths = [*paths]
    return _chosen(_rows(root, paths if len(paths) <= _ON_A_LINE else (), variables), paths)


def _chosen(rows: Iterable[bytes], paths: Iterable[str]) -> dict[str, Entry | None]:
    chosen: dict[str, Entry | None] = dict.fromkeys(paths)
    names = set(map(os.fsencode, chosen))
    for row in rows:
        about, _, name = row.partition(b"\t")
        if name in names:
            _tag, mode, oid, _stage = about.split(b" ")
            chosen[os.fsdecode(name)] = Entry(int(mode, 8), oid.decode("ascii"))
    return chosen


def follow(
    place: Repository, repository: pygit2.Repository, before: str, after: str, known: str = ""
) -> tuple[str, ...]:
    """Give the index the entries of the tree `after` where it still has those of `before` or `known`; return the paths.

    Refusal `git.failed` if git could not.
    """
    paths = [change.path for change in tree_objects.changes(repository, before, after)]
    stale = []
    for path, have in entries(place.root, paths).items():
        old, new, other = (tree_objects.entry(repository, tree, path) for tree in (before, after, known or before))
        announced = old is None and have is not None and have.oid == EMPTY
        if have != new and (have in (old, other) or announced):
            stale.append(path)
    set_to(place, repository, after, stale)
    return tuple(stale)


def set_to(place: Repository, repository: pygit2.Repository, tree: str, paths: Sequence[str]) -> None:
    """Give the index the entries of a tree for these paths. A lock that another git holds is waited for.

    Refusal `git.failed` if git could not.
    """
    if not paths:
        return
    rows = _update_input({path: tree_objects.entry(repository, tree, path) for path in paths})
    arguments = ["update-index", "-z", "--index-info"]
    time = clock.SystemClock()
    end = time.monotonic() + _PATIENCE
    while True:
        place.guard()
        result = git_program.write(place.root, arguments, rows)
        if result.status == 0:
            return
        if b"index.lock" not in result.err or time.monotonic() >= end:
            raise git_program.failure(arguments, result)
        time.pause(_PAUSE)


def _update_input(entries: Mapping[str, Entry | None]) -> bytes:
    """Return the input of `git update-index -z --index-info` that sets these entries; None removes one."""
    rows = []
    for path, entry in sorted(entries.items()):
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(f"{about}\t".encode("ascii") + os.fsencode(path) + b"\0")
    return b"".join(rows)


def _rows(root: str, paths: Sequence[str], extra: Mapping[str, str] | None = None) -> list[bytes]:
    """Return the rows of `git ls-files`, which reads split and sparse indexes and reports assumed and skipped files."""
    listed = git_program.output(root, ["ls-files", "--stage", "-v", "-z", "--", *paths], extra=extra)
    return listed.split(b"\0")[:-1]
