"""Which paths differ from HEAD or are not in it, as git sees it. git is asked only where the raw bytes differ."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pygit2
from pygit2.enums import DeltaStatus, FileMode

from idumb.domain import paths as path_rules
from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, index_file
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.restore import path_state

_ON_A_LINE = 200


def changed(place: Repository, repository: pygit2.Repository, head_tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the changed paths that one of `paths` covers, sorted.

    `head_tree` is the empty tree before the first commit.
    """
    index = _index(repository)
    top = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        unsure = [path for path in paths if not _is_clean(top, repository, index, head_tree, path)]
    finally:
        os.close(top)
    if not unsure:
        return ()
    # Our globs differ from git's: match them here, on the status of all paths.
    literal = len(unsure) <= _ON_A_LINE and not any(map(path_rules.has_wildcard, unsure))
    arguments = ["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", git_program.NO_SUBMODULES]
    differing = _parse(git_program.output(place.root, [*arguments, *(["--", *unsure] if literal else [])]))
    return tuple(sorted(filter(path_rules.cover(unsure), differing)))


def added(place: Repository, repository: pygit2.Repository, head_tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of files that HEAD lacks, staged or untracked but not ignored, sorted.

    git is asked about paths that HEAD lacks only. `head_tree` is the empty tree before the first commit.
    """
    missing = sorted(path for path in set(paths) if tree_objects.entry(repository, head_tree, path) is None)
    if not missing:
        return ()
    kinds = ["--cached", "--others", "--exclude-standard"]
    listed = git_program.output(place.root, ["ls-files", *kinds, "-z", "--", *missing])
    names = {os.fsdecode(name) for name in listed.split(b"\0")}
    return tuple(path for path in missing if path in names)


def staged_blobs(place: Repository, repository: pygit2.Repository, head_tree: str) -> frozenset[str]:
    """Return the ids of staged files: no commit refers to them, so git may remove them once they are unstaged."""
    index = _index(repository)
    if index is None:
        base = ["--cached", "--raw", "--no-renames", "--abbrev=40", "-z", head_tree]
        rows = git_program.output(place.root, ["diff-index", *base]).split(b"\0")[::2]
        modes_and_ids = [row.split(b" ")[1:4:2] for row in rows if row]
        return frozenset(oid.decode("ascii") for mode, oid in modes_and_ids if mode not in (b"000000", b"160000"))
    deltas = index.diff_to_tree(repository[head_tree].peel(pygit2.Tree)).deltas
    kept = (delta.new_file for delta in deltas if delta.status != DeltaStatus.DELETED)
    return frozenset(str(staged_file.id) for staged_file in kept if staged_file.mode != FileMode.COMMIT)


def _index(repository: pygit2.Repository) -> pygit2.Index | None:
    """Return None for formats that libgit2 does not read; then git is asked about every path."""
    try:
        return index_file.opened(repository)
    except (pygit2.GitError, OSError):
        return None


def _is_clean(top: int, repository: pygit2.Repository, index: pygit2.Index | None, head_tree: str, path: str) -> bool:
    """Return whether HEAD, index and working tree surely hold the same raw bytes, or nothing at all."""
    if index is None or path_rules.has_wildcard(path):
        return False
    staged = Entry(int(index[path].mode), str(index[path].id)) if path in index else None
    present = path_state.look(top, path)
    same = tree_objects.entry(repository, head_tree, path) == staged == present.entry
    return same and not present.is_folder and not present.is_odd


def _parse(output: bytes) -> set[str]:
    """Parse rows `1 XY sub mH mI mW hH hI path`, `u` with ten fields before the path, and `? path`."""
    fields = {b"1": 8, b"u": 10, b"?": 1}
    paths: set[str] = set()
    for row in output.split(b"\0"):
        kind = row[:1]
        if kind in fields:
            paths.add(os.fsdecode(row.split(b" ", fields[kind])[-1]))
    return paths
