"""The user's index: its bytes and entries, its changes since a snapshot, and how entries are added and set."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pygit2

from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, open_repository
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects

INDEX = "index"
"""Its name in git's folder, and in the commit of a snapshot."""
FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry


class Announced(NamedTuple):
    """The index file's bytes before and after paths were announced; None if there was no file."""

    before: bytes | None
    after: bytes | None


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, INDEX)


def read(place: Repository) -> bytes | None:
    """Return the bytes; None if there is no file, as before the first `git add`."""
    try:
        with open(path_of(place), "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def swap(place: Repository, expected: bytes | None, replacement: bytes | None) -> bool:
    """Replace the bytes under git's own lock if they are as expected. Return whether that was done.

    If killed, the file is as before or as wanted; a leftover lock is removed by the next command.
    """
    path = path_of(place)
    try:
        descriptor = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as stream:
            same = read(place) == expected
            stream.write(replacement or b"")
            stream.flush()
            os.fsync(descriptor)
        place.guard()
        if same and replacement is not None:
            os.rename(path + ".lock", path)
            return True
        if same and expected is not None:
            os.unlink(path)
        os.unlink(path + ".lock")
    except BaseException:
        # A leftover lock would block every git command.
        with contextlib.suppress(OSError):
            os.unlink(path + ".lock")
        raise
    return same


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
    return _chosen(_rows(root, variables), paths)


def entries_at(place: Repository, data: bytes | None, paths: Iterable[str]) -> dict[str, Entry | None]:
    """Return the entries that the bytes of an index have for these paths; flags are not among them."""
    return _chosen(_rows_at(place, data), paths)


def _chosen(rows: Iterable[bytes], paths: Iterable[str]) -> dict[str, Entry | None]:
    chosen: dict[str, Entry | None] = dict.fromkeys(paths)
    names = set(map(os.fsencode, chosen))
    for row in rows:
        about, _, name = row.partition(b"\t")
        if name in names:
            _tag, mode, oid, _stage = about.split(b" ")
            chosen[os.fsdecode(name)] = Entry(int(mode, 8), oid.decode("ascii"))
    return chosen


def announce(place: Repository, repository: pygit2.Repository, new: Sequence[str]) -> Announced | str:
    """Add new files to the index without their bytes. Return git's words if that fails."""
    before = read(place)
    if not new:
        return Announced(before, before)
    # A task may create files outside a sparse checkout; older versions of git do not know the option.
    sparse = ["--sparse"] if _is_sparse(repository) else []
    result = git_program.write(
        place.root, ["add", "--intent-to-add", "--force", *sparse, *FROM_STDIN], literal_pathspecs(new)
    )
    return Announced(before, read(place)) if result.status == 0 else result.words


def _is_sparse(repository: pygit2.Repository) -> bool:
    try:
        return repository.config.get_bool("core.sparseCheckout")
    except (KeyError, ValueError):
        return False


def take_back(place: Repository, index: Announced) -> None:
    """Restore the index, unless another program wrote it since."""
    if index.before != index.after:
        swap(place, index.after, index.before)


def set_to_head(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> bool:
    """Give the index HEAD's entries for these paths, which git did not reach. Return whether that worked."""
    tree = _head_tree(repository)
    rows = update_input({path: tree_objects.entry(repository, tree, path) for path in paths})
    return git_program.write(place.root, ["update-index", "-z", "--index-info"], rows).status == 0


def settle(place: Repository, repository: pygit2.Repository, id: str, paths: Sequence[str]) -> bool:
    """If git was killed between branch and index, give the index the entries of the commit `id` for these paths.

    Only while that commit is HEAD, and only for entries that are as they were before: others are the user's.
    """
    if open_repository.head_of(repository) != id:
        return True
    commit = repository[id].peel(pygit2.Commit)
    before = str(commit.parents[0].tree_id) if commit.parents else tree_objects.EMPTY_TREE
    return follow(place, repository, before, str(commit.tree_id), paths)


def follow(place: Repository, repository: pygit2.Repository, before: str, after: str, paths: Sequence[str]) -> bool:
    """Give the index the entries of HEAD (tree `after`) for these paths, where it still has those of `before`.

    Return whether git could.
    """
    stale = []
    for path, have in entries(place.root, paths).items():
        old, new = (tree_objects.entry(repository, tree, path) for tree in (before, after))
        announced = old is None and have is not None and have.oid == EMPTY
        if have != new and (have == old or announced):
            stale.append(path)
    return set_to_head(place, repository, stale) if stale else True


def literal_pathspecs(paths: Iterable[str]) -> bytes:
    # Not by GIT_LITERAL_PATHSPECS, which the user's hooks would inherit.
    return b"".join(b":(top,literal)" + os.fsencode(path) + b"\0" for path in paths)


def at_snapshot(repository: pygit2.Repository, commit: str) -> bytes | None:
    """Return the bytes that a snapshot has of the index; None if there was none."""
    item = tree_objects.rows_of(repository, commit).get(INDEX)
    return None if item is None else bytes(repository.read(item.oid.hex())[1])


def update_input(entries: Mapping[str, Entry | None]) -> bytes:
    """Return the input of `git update-index -z --index-info` that sets these entries; None removes one."""
    rows = []
    for path, entry in sorted(entries.items()):
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(f"{about}\t".encode("ascii") + os.fsencode(path) + b"\0")
    return b"".join(rows)


def _rows_at(place: Repository, data: bytes | None) -> list[bytes]:
    if data is None:
        return []
    with tempfile.NamedTemporaryFile(prefix="idumb-index-") as stream:
        stream.write(data)
        stream.flush()
        return _rows(place.root, {"GIT_INDEX_FILE": stream.name})


def _rows(root: str, extra: Mapping[str, str] | None = None) -> list[bytes]:
    """Return the rows of `git ls-files`, which reads split and sparse indexes and reports assumed and skipped files."""
    listed = git_program.output(root, ["ls-files", "--stage", "-v", "-z"], extra=extra)
    return listed.split(b"\0")[:-1]
