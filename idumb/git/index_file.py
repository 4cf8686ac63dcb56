"""The user's index: its entries, and how entries are set; and what git would store for files."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain import errors
from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, guarded_files, open_repository, tree_objects
from idumb.git.discover import Repository
from idumb.git.tree_objects import SUBMODULE
from idumb.system import clock
from idumb.system.files import private_folders

if TYPE_CHECKING:
    import pygit2

_PAUSE, _PATIENCE = 0.1, 30.0  # seconds between two looks at a lock, and of waiting for it
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry
_ON_A_LINE = 200
_CONFLICT = Entry(0, "")  # of an unmerged path


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, "index")


def staged(place: Repository, repository: pygit2.Repository) -> dict[str, Entry | None]:
    """Return the index entries that differ from HEAD; None for a path that only HEAD has. Conflicts are left out.

    An announced path (`git add --intent-to-add`) has no bytes to lose.
    """
    found = _differing(place, repository, tree_objects.tree_of(repository, open_repository.head_of(repository)))
    return {path: entry for path, entry in found.items() if entry != _CONFLICT}


def _differing(place: Repository, repository: pygit2.Repository, tree: str) -> Mapping[str, Entry | None]:
    """Return the index entries that differ from a tree, as `staged` does, and conflicts."""
    if tree == tree_objects.EMPTY_TREE:
        tree_objects.write(repository, {})
    return _asked(place.root, tree, guarded_files.stat_key(path_of(place)))


@functools.lru_cache(maxsize=4)
def _asked(root: str, tree: str, _index: tuple[int, ...] | None) -> Mapping[str, Entry | None]:
    """Ask git once for each state of the index."""
    arguments = ["diff-index", "--cached", "--raw", "--no-renames", "--abbrev=40", "-z", tree]
    rows = git_program.output(root, arguments).split(b"\0")
    found: dict[str, Entry | None] = {}
    for about, path in zip(rows[::2], rows[1::2], strict=False):
        _, mode, _, oid, kind = about.decode("ascii").split(" ")
        if kind == "U":
            found[os.fsdecode(path)] = _CONFLICT
        elif not (kind == "A" and oid == EMPTY):
            found[os.fsdecode(path)] = None if kind == "D" else Entry(int(mode, 8), oid)
    return found


def staged_tree(place: Repository, repository: pygit2.Repository) -> str:
    """Return the tree that a commit of the index would have; "" if that is HEAD's, or the index or HEAD cannot be read.

    The index refers to the blobs, but once they are unstaged, nothing keeps them.
    """
    try:
        rows = staged(place, repository).items()
        is_kept = {path: row for path, row in rows if row is None or row.mode == SUBMODULE or row.oid in repository}
        head = tree_objects.tree_of(repository, open_repository.head_of(repository))
        return tree_objects.put(repository, head, is_kept) if is_kept else ""
    except errors.Refusal:
        return ""


def follow(
    place: Repository, repository: pygit2.Repository, before: str, after: str, own: Collection[str] = ()
) -> tuple[str, ...]:
    """Give the index the entries of the tree `after` where it still has those of `before`, and for the paths `own`.

    Return the paths. Refusal `git.failed` if git could not.
    """
    changes = tree_objects.changes(repository, before, after)
    other = _differing(place, repository, before) if changes else {}
    stale = [c.path for c in changes if c.path not in other or (c.path in own and other[c.path] != c.new)]
    set_to(place, repository, after, stale)
    return tuple(stale)


def set_to(place: Repository, repository: pygit2.Repository, tree: str, paths: Sequence[str]) -> None:
    """Give the index the entries of a tree for these paths. A lock that another git holds is waited for.

    Refusal `git.failed` if git could not.
    """
    if not paths:
        return
    rows = []
    for path in sorted(paths):
        entry = tree_objects.entry(repository, tree, path)
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(about.encode("ascii") + b"\t" + os.fsencode(path) + b"\0")
    time = clock.SystemClock()
    end = time.monotonic() + _PATIENCE
    while True:
        place.guard()
        result = git_program.write(place.root, arguments := ["update-index", "-z", "--index-info"], b"".join(rows))
        if result.status == 0:
            return
        if b"index.lock" not in result.err or time.monotonic() >= end:
            raise git_program.failure(arguments, result)
        time.pause(_PAUSE)


@contextlib.contextmanager
def private(place: Repository) -> Iterator[dict[str, str]]:
    """Give git an index of its own, which does not exist yet, by a variable."""
    private_folders.make(place.state_dir, root=place.common_dir)
    with tempfile.TemporaryDirectory(dir=place.state_dir, prefix="index-") as folder:
        yield {"GIT_INDEX_FILE": os.path.join(folder, "index")}


def cleaned(place: Repository, root: str, head: str | None, paths: Sequence[str]) -> dict[str, Entry]:
    """Return what git would store for these files below `root`, after filters and line endings; no missing file.

    git decides in a private index, so the user's index stays as it is.
    """
    with private(place) as index:
        variables = {"GIT_DIR": place.git_dir, "GIT_COMMON_DIR": place.common_dir, "GIT_WORK_TREE": root, **index}
        # With its old entry in the index, git keeps the line endings of a file that was committed with CRLF.
        git_program.change(root, ["read-tree", head or "--empty"], variables)
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        git_program.change(root, arguments, variables, names)
        listed = ["ls-files", "--stage", "-z", "--", *(paths if len(paths) <= _ON_A_LINE else ())]
        rows = (row.partition(b"\t") for row in git_program.output(root, listed, extra=variables).split(b"\0") if row)
        found = {os.fsdecode(name): about.decode("ascii").split(" ") for about, _, name in rows}
    return {path: Entry(int(found[path][0], 8), found[path][1]) for path in paths if path in found}
