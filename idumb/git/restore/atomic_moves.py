"""Exchange two names, or move to a free name, in one step of the system: no save of another program is overwritten.

Linux has `renameat2`, macOS `renameatx_np`; some file systems support neither flag.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from idumb.git.restore.path_state import Spot

_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))
# of `link`: the file system has no hard links, or the name is that of a folder
_UNLINKABLE = _UNSUPPORTED | {errno.EPERM, errno.EISDIR, errno.EMLINK}


class _System(NamedTuple):
    """The system's call and its constants: no folder, exchange, do not replace."""

    call: Callable[..., int]
    no_folder: int
    swap: int
    exclusive: int


@functools.cache
def _system() -> _System | None:
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


def place(source: Spot, target: Spot) -> None:
    """Move to a free name. Raises FileExistsError if it is taken, and OSError."""
    system = _system()
    if system is not None and _called(system, source, target, system.exclusive):
        return
    try:
        os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _UNLINKABLE:
            raise
        _place_after_look(source, target)
    else:
        os.unlink(source.name, dir_fd=source.folder)


def _place_after_look(source: Spot, target: Spot) -> None:
    try:
        os.lstat(target.name, dir_fd=target.folder)
    except FileNotFoundError:
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.name)


def _called(system: _System, source: Spot, target: Spot, flag: int) -> bool:
    """Return False if the file system does not know the flag."""
    folders = [system.no_folder if spot.folder is None else spot.folder for spot in (source, target)]
    names = [ctypes.c_char_p(os.fsencode(spot.name)) for spot in (source, target)]
    if system.call(folders[0], names[0], folders[1], names[1], ctypes.c_uint(flag)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), target.name)
