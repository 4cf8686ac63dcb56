"""The lock of a work tree: a file locked by filelock, which ends with its process. What counts is the file at the path.

A file that was replaced is a lock that was taken away: its holder finds out by one look before each effect.
"""

from __future__ import annotations

import contextlib
import os

from idumb.domain.errors import StoreError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class OwnerLock:
    """A lock that this process took. `holds` is true until the file at the path is another one, or gone."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._process = os.getpid()
        self._key = _key(os.fstat(descriptor))

    def holds(self) -> bool:
        # A process that was forked off shares the descriptor, not the right to write.
        if self._process != os.getpid():
            return False
        try:
            return _key(os.stat(self._path, follow_symlinks=False)) == self._key
        except OSError:
            return False

    def release(self) -> None:
        """Closing would do, but for a program that inherited the descriptor by mistake."""
        if self._process == os.getpid():
            import filelock

            with contextlib.suppress(OSError):
                filelock.unlock_descriptor(self._descriptor)
        os.close(self._descriptor)


def take(path: str) -> OwnerLock | None:
    """The lock, or None while another process holds it. Raises OSError, and StoreError without locks."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            if not _locked(descriptor, path):
                os.close(descriptor)
                return None
            lock = OwnerLock(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if lock.holds():
            return lock
        lock.release()  # replaced between opening and locking


def replace(path: str) -> OwnerLock:
    """Take the lock away from whoever has it: a new file, held by this process, stands at the path."""
    fresh = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    descriptor = os.open(fresh, _FLAGS | os.O_EXCL, 0o600)
    try:
        _locked(descriptor, path)
        os.rename(fresh, path)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
    return OwnerLock(path, descriptor)


def _locked(descriptor: int, path: str) -> bool:
    import errno

    import filelock

    try:
        return filelock.lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno in {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}:
            raise StoreError("lock.unsupported", f"this file system has no locks: {os.path.dirname(path)}") from error
        raise


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
