"""The user's index file: its bytes, what changed in it since a snapshot, and the bytes of before put in their place."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from typing import TYPE_CHECKING

from idumb.git import comparing, program, snapshot, tree_objects
from idumb.git.discover import Repository

if TYPE_CHECKING:
    import pygit2


def path_of(place: Repository) -> str:
    return os.path.join(place.git_dir, "index")


def read(place: Repository) -> bytes | None:
    """None where there is no file, as before the first `git add`."""
    try:
        with open(path_of(place), "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def swap(place: Repository, expected: bytes | None, wanted: bytes | None) -> bool:
    """Put other bytes in its place under git's own lock, where it is still as expected; whether that was done.

    Killed in between it leaves the file as it was or as wanted, and perhaps the lock, which the next command removes.
    """
    path = path_of(place)
    try:
        descriptor = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as stream:
            same = read(place) == expected
            stream.write(wanted or b"")
            stream.flush()
            os.fsync(descriptor)
        place.guard()
        if same and wanted is not None:
            os.rename(path + ".lock", path)
            return True
        if same and expected is not None:
            os.unlink(path)
        os.unlink(path + ".lock")
    except BaseException:
        # A lock that stays keeps git from everything.
        with contextlib.suppress(OSError):
            os.unlink(path + ".lock")
        raise
    return same


def kept(repository: pygit2.Repository, commit: str) -> bytes | None:
    """The bytes that a snapshot has of it, None where there was none."""
    item = comparing.rows_of(repository, commit).get(snapshot.INDEX)
    if item is None:
        return None
    if item.mode != tree_objects.FOLDER:
        return bytes(repository[item.oid.hex()].read_raw())
    pieces = sorted(comparing.rows(repository, item.oid).items())
    return b"".join(repository[piece.oid.hex()].read_raw() for _, piece in pieces)


def changes(place: Repository, before: bytes | None, after: bytes | None) -> tuple[str, ...]:
    """Paths whose entries differ, flags included; what git only knows about the files' times is no change."""
    if before == after:
        return ()
    old, new = _entries(place, before), _entries(place, after)
    return tuple(sorted({os.fsdecode(row.partition(b"\t")[2]) for row in old ^ new}))


def _entries(place: Repository, data: bytes | None) -> frozenset[bytes]:
    """Rows of `git ls-files`, which reads split and sparse indexes too, and tells assumed and skipped files."""
    if data is None:
        return frozenset()
    with tempfile.NamedTemporaryFile(prefix="idumb-index-") as stream:
        stream.write(data)
        stream.flush()
        arguments = ["ls-files", "--stage", "-v", "-z"]
        out = program.output(place.root, arguments, extra={"GIT_INDEX_FILE": stream.name})
    return frozenset(filter(None, out.split(b"\0")))


def command(place: Repository, repository: pygit2.Repository, commit: str) -> str:
    """What a person says in the top folder to have the index of a snapshot again."""
    path = path_of(place)
    named = shlex.quote(os.path.relpath(path, place.root) if path.startswith(place.root + os.sep) else path)
    item = comparing.rows_of(repository, commit).get(snapshot.INDEX)
    if item is None:
        return f"rm -f {named}"
    if item.mode != tree_objects.FOLDER:
        return f"git cat-file blob {commit}:{snapshot.INDEX} > {named}"
    pieces = f"$(git ls-tree --name-only {commit}:{snapshot.INDEX})"
    return f"for n in {pieces}; do git cat-file blob {commit}:{snapshot.INDEX}/$n; done > {named}"
