"""One path below the root: its present state, and moves that overwrite no save of another program.

Paths are reached by descriptors of folders that follow no link, so none leads outside. To exchange two names, or to
move to a free one, takes one step of the system: Linux has `renameat2`, macOS `renameatx_np`. Some file systems support
neither flag.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from idumb.domain.proof.ledger import Entry
from idumb.git.tree_objects import FILE, LINK, PROGRAM
from idumb.system import atomic_write, private_folders
from idumb.system.private_folders import closing

_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))
# of `link`: the file system has no hard links, or the name is that of a folder
_UNLINKABLE = _UNSUPPORTED | {errno.EPERM, errno.EISDIR, errno.EMLINK}


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


def parent(top: int, parts: list[str], gained: set[str] | None = None) -> AbstractContextManager[int]:
    """Open the folder that holds the last of `parts`, for the length of a block."""
    return closing(atomic_write.open_folder(top, parts[:-1], gained))


def look(top: int, path: str) -> Present:
    """Return the present state of one path below the open folder `top`."""
    parts = path.split("/")
    try:
        folder = atomic_write.open_folder(top, parts[:-1])
    except FileNotFoundError:
        return Present(None, None)
    except OSError:
        return _look_blocked(top, parts)
    with closing(folder):
        return look_at(Spot(folder, parts[-1]))


def entry_below(root: str, path: str) -> Entry | None:
    """Return the file or link at a path below the folder `root`; None for anything else, or if it cannot be read."""
    with contextlib.suppress(OSError), private_folders.opened(root) as top:
        return look(top, path).entry
    return None


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
    with os.fdopen(os.open(spot.name, private_folders.FILE, dir_fd=spot.folder), "rb") as stream:
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


class _System(NamedTuple):
    """The system's call and its constants: no folder, exchange, do not replace."""

    call: Callable[..., int]
    no_folder: int
    swap: int
    exclusive: int


@functools.cache
def _system() -> _System | None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):
        if sys.platform == "darwin":
            return _System(library.renameatx_np, -2, 2, 4)
        return _System(library.renameat2, -100, 2, 1)
    return None


def exchange(one: Spot, other: Spot) -> bool:
    """Exchange what is at two names, and return True; False if this file system cannot. Raises OSError."""
    system = _system()
    return system is not None and _called(system, one, other, system.swap)


def move_to_free(source: Spot, target: Spot) -> None:
    """Move to a free name. Raises FileExistsError if it is taken, and OSError."""
    system = _system()
    if system is not None and _called(system, source, target, system.exclusive):
        return
    try:
        os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _UNLINKABLE:
            raise
        _move_after_look(source, target)
    else:
        os.unlink(source.name, dir_fd=source.folder)


def _move_after_look(source: Spot, target: Spot) -> None:
    try:
        os.lstat(target.name, dir_fd=target.folder)
    except FileNotFoundError:
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.name)


def _called(system: _System, source: Spot, target: Spot, flag: int) -> bool:
    """Return False if the file system does not know the flag."""
    import ctypes

    folders = [system.no_folder if spot.folder is None else spot.folder for spot in (source, target)]
    names = [ctypes.c_char_p(os.fsencode(spot.name)) for spot in (source, target)]
    if system.call(folders[0], names[0], folders[1], names[1], ctypes.c_uint(flag)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), target.name)
