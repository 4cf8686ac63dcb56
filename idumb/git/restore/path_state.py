"""The present state of a path below the root, reached by descriptors of folders that follow no link.

So no path leads outside.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from idumb.domain.proof.ledger import Entry
from idumb.git.objects.tree_objects import FILE, LINK, PROGRAM
from idumb.system.files import atomic_write

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would block


class Spot(NamedTuple):
    """A name in an open folder, or an absolute path without one."""

    folder: int | None
    name: str


class Present(NamedTuple):
    """The present state of a path. `entry` is None for nothing, for folders and for types that git cannot hold.

    `in_the_way` is a file or link at the place of a folder above the path.
    """

    entry: Entry | None
    status: os.stat_result | None
    in_the_way: str | None = None
    by_link: bool = False

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_odd(self) -> bool:
        """Return whether it is a device, socket or pipe."""
        return self.status is not None and self.entry is None and not self.is_folder


class Step(NamedTuple):
    """One path of a restore: its target (None: nothing) and its present state."""

    path: str
    want: Entry | None
    present: Present


@contextlib.contextmanager
def parent(top: int, parts: list[str], gained: set[str] | None = None) -> Iterator[int]:
    """Return a descriptor of the folder that holds the last of `parts`."""
    folder = atomic_write.open_folder(top, parts[:-1], gained)
    try:
        yield folder
    finally:
        os.close(folder)


def look(top: int, path: str) -> Present:
    """Return the present state of one path below the open folder `top`."""
    parts = path.split("/")
    try:
        folder = atomic_write.open_folder(top, parts[:-1])
    except FileNotFoundError:
        return Present(None, None)
    except OSError:
        return _look_blocked(top, parts)
    try:
        return look_at(Spot(folder, parts[-1]))
    finally:
        os.close(folder)


def entry_below(root: str, path: str) -> Entry | None:
    """Return the file or link at a path below the folder `root`; None for anything else, or if it cannot be read."""
    with contextlib.suppress(OSError), opened(root) as top:
        return look(top, path).entry
    return None


@contextlib.contextmanager
def opened(root: str) -> Iterator[int]:
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)


def look_at(spot: Spot) -> Present:
    """Return the present state of what is at `spot`. Raises OSError if it cannot be read."""
    try:
        status = os.lstat(spot.name, dir_fd=spot.folder)
        if stat.S_ISLNK(status.st_mode):
            return Present(Entry(LINK, _link_digest(spot)), status)
        if not stat.S_ISREG(status.st_mode):
            return Present(None, status)
        return Present(Entry(PROGRAM if status.st_mode & 0o100 else FILE, _digest(spot)), status)
    except FileNotFoundError:
        return Present(None, None)


def _link_digest(spot: Spot) -> str:
    target = os.fsencode(os.readlink(spot.name, dir_fd=spot.folder))
    return hashlib.sha1(b"blob %d\0%b" % (len(target), target), usedforsecurity=False).hexdigest()


def _digest(spot: Spot) -> str:
    """Return the id that git gives these bytes as they are."""
    with os.fdopen(os.open(spot.name, _OPEN, dir_fd=spot.folder), "rb") as stream:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(stream.fileno()).st_size, usedforsecurity=False)
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _look_blocked(top: int, parts: list[str]) -> Present:
    """Return which parent is not a folder, and whether it is a link."""
    for count in range(1, len(parts)):
        with parent(top, parts[:count]) as folder:
            status = os.lstat(parts[count - 1], dir_fd=folder)
        if not stat.S_ISDIR(status.st_mode):
            return Present(None, None, "/".join(parts[:count]), stat.S_ISLNK(status.st_mode))
    return Present(None, None)
