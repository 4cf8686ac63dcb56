"""Store the raw bytes of files and links in the object database, without filters or line-ending changes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

import pygit2

from idumb.domain import errors
from idumb.git import git_program
from idumb.git.objects import tree_objects
from idumb.git.objects.object_writer import Writer

LARGE = 32 << 20
TOO_LARGE = 2 << 30
_TRIES = 3
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Stored(NamedTuple):
    """A stored file: git mode, raw id, the stat from before it was read, and whether it was stable while being read."""

    mode: int
    oid: bytes
    status: os.stat_result
    steady: bool


def git_mode(st_mode: int) -> int:
    if stat.S_ISLNK(st_mode):
        return tree_objects.LINK
    return tree_objects.PROGRAM if st_mode & 0o100 else tree_objects.FILE


def put_path(writer: Writer, path: str) -> Stored | None:
    """Store what is at an absolute path. Return None if it is gone, or is neither a file nor a link.

    A file that changes while being read is read again. If it never stabilizes, it is reported as not steady.
    """
    for attempt in range(_TRIES):
        try:
            found = _put_once(writer, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            # ELOOP (it is now a link) and ENXIO: its type changed since the scan looked at it.
            if attempt == _TRIES - 1:
                raise
            continue
        if found is None or found.steady:
            return found
    return found


def _put_once(writer: Writer, path: str) -> Stored | None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        oid = writer.blob(os.fsencode(os.readlink(path)))
        return Stored(tree_objects.LINK, oid, status, steady=_same(status, os.lstat(path)))
    if not stat.S_ISREG(status.st_mode):
        return None
    descriptor = os.open(path, _OPEN)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        require_size(path, before.st_size)
        oid = _put_open(writer, descriptor, before.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Stored(git_mode(before.st_mode), oid, before, steady=_same(before, after))


def require_size(path: str, size: int) -> None:
    if size <= TOO_LARGE:
        return
    raise errors.Refusal(
        "git.file-too-large",
        f"{path} has {size >> 20} MiB; idumb saves files of up to {TOO_LARGE >> 20} MiB before it runs a task",
        hint="let git ignore it, or move it out of the work tree",
    )


def _put_open(writer: Writer, descriptor: int, size: int) -> bytes:
    if size <= LARGE:
        # Read one byte more than the size: an unchanged file takes one read, and growth is noticed.
        return writer.blob(os.read(descriptor, size + 1))
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return writer.stream(stream)


def chunks(repository: pygit2.Repository, root: str, oid: str) -> Iterator[bytes]:
    """Return a blob's bytes. git reads large blobs out, so only a piece of one is in memory at a time."""
    if repository.odb.read_header(oid)[1] <= LARGE:
        yield repository[oid].read_raw()
    else:
        yield from git_program.stream(root, ["cat-file", "blob", oid])


def hash_at(folder: int, name: str, status: os.stat_result) -> bytes:
    """Return the id that the file or link `name` in an open folder would get, without writing it. Raises OSError."""
    if stat.S_ISLNK(status.st_mode):
        return pygit2.hash(os.fsencode(os.readlink(name, dir_fd=folder))).raw
    descriptor = os.open(name, _OPEN, dir_fd=folder)
    try:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(descriptor).st_size, usedforsecurity=False)
        while chunk := os.read(descriptor, 1 << 20):
            digest.update(chunk)
    finally:
        os.close(descriptor)
    return digest.digest()


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) == (
        other.st_size,
        other.st_mtime_ns,
        other.st_ctime_ns,
        other.st_ino,
    )
