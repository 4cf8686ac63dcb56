"""The lock of a working tree: an advisory lock on a file, which ends with its process."""

from __future__ import annotations

import contextlib
import os

from idumb.domain.errors import StoreError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class OwnerLock:
    """A lock that this process took. `holds` is true until the file at the path is replaced or removed."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._process = os.getpid()

    def holds(self) -> bool:
        # A forked process shares the descriptor, not the right to write.
        if self._process != os.getpid():
            return False
        try:
            return os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Release explicitly: a program may have inherited the descriptor by mistake."""
        if self._process == os.getpid():
            import filelock

            with contextlib.suppress(OSError):
                filelock.unlock_descriptor(self._descriptor)
        os.close(self._descriptor)


def take(path: str) -> OwnerLock | None:
    """Return the lock, or None while another process holds it. Raises OSError, and StoreError without locks."""
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
    """Take the lock from its holder: put a new file, locked by this process, at the path."""
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


def is_free(path: str) -> bool:
    """Return whether no process holds the lock. It is held for a moment to find out."""
    try:
        lock = take(path) if os.path.exists(path) else None
    except (OSError, StoreError):
        return False
    if lock is not None:
        lock.release()
    return lock is not None
