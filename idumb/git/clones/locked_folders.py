"""Temporary folders in a common place, each with a lock that ends with its process.

The lock distinguishes a folder in use from one that a killed process left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from idumb.git.clones import clone
from idumb.system.files import user_folders

_LOCK = ".lock"


def lock(top: str) -> tuple[str, int]:
    """Lock a free name: the lock comes before the folder and goes after it. Return the folder and the lock."""
    number = 1
    user_folders.make_private(top)
    while (descriptor := _taken(os.path.join(top, f"{number}{_LOCK}"), create=True)) is None:
        user_folders.make_private(top)  # another process removes it when it is empty
        number += 1
    return os.path.join(top, str(number)), descriptor


def unlock(folder: str, descriptor: int) -> None:
    """Remove a folder, then its lock."""
    remove(folder)
    os.close(descriptor)


def abandoned(top: str) -> Iterator[str]:
    """Yield the folders that no process holds. Each is locked while the caller removes it."""
    try:
        names = sorted(os.listdir(top))
    except OSError:
        return
    held = {name.removesuffix(_LOCK) for name in names if name.endswith(_LOCK)}
    for name in sorted(name for name in held | set(names) if name.isdecimal()):
        descriptor = _taken(os.path.join(top, name + _LOCK), create=False) if name in held else None
        if name in held and descriptor is None:
            continue
        try:
            yield os.path.join(top, name)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def remove(folder: str) -> None:
    clone.remove_tree(folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder + _LOCK)


def remove_empty(top: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(top)


def _taken(path: str, *, create: bool) -> int | None:
    """Return the descriptor of a locked file; None if another process has it, or is removing it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
