"""Locks on files, which end with their process: taken by filelock, on descriptors of ours."""

from __future__ import annotations

import contextlib
import os

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def take(path: str, *, create: bool = True) -> int | None:
    """Return the descriptor of the locked file; None if another process has the lock, or there is no file.

    Raises OSError, also if the file system has no locks.
    """
    while True:
        try:
            descriptor = os.open(path, _FLAGS | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            if lock(descriptor) and is_at(path, descriptor):
                return descriptor
            is_held = is_at(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if is_held:
            return None  # otherwise it was replaced or removed between opening and locking


def lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process has the lock."""
    import filelock  # it takes as long as a small command

    return filelock.lock_descriptor(descriptor, blocking=False)


def release(descriptor: int) -> None:
    """Unlock explicitly, and close: a program may have inherited the descriptor by mistake."""
    import filelock

    with contextlib.suppress(OSError):
        filelock.unlock_descriptor(descriptor)
    os.close(descriptor)


def is_at(path: str, descriptor: int) -> bool:
    """Return whether the open file is the one at the path."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except OSError:
        return False
