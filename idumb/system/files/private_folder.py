"""A folder for files that only this process needs; its path is short, because sockets have short paths.

It is removed when it is closed, or by a later process if this one is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Sequence

_USUAL = "/tmp"  # noqa: S108 - the folder in it has a random name and is private

_LONGEST_TMPDIR = 50
"""A socket's path may have 104 bytes, and tests add their own folders and names."""

_ABANDONED = 3600
"""Seconds after which a folder without a lock has no owner."""


class PrivateFolder:
    """A folder that only this user can read. It is locked while this process lives, so that another one removes it."""

    def __init__(self, avoid: Sequence[str] = ()) -> None:
        """Create the folder, outside the folders `avoid`. Raises OSError."""
        base = _base(avoid)
        sweep(base)
        self.path = os.path.join(base, os.urandom(4).hex())
        os.mkdir(self.path, 0o700)  # fails if it exists, whatever it is
        self._lock = os.open(f"{self.path}/new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(f"{self.path}/new", f"{self.path}/lock")  # nobody finds it unlocked

    def close(self) -> None:
        remove(self.path)
        os.close(self._lock)


def _base(avoid: Sequence[str]) -> str:
    """Return the folder for all private folders of this user: in TMPDIR, or in /tmp if that has a long path."""
    base = f"{_parent(avoid)}/idumb-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(base, 0o700)
    status = os.lstat(base)
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
        return base
    return os.path.dirname(base)


def _parent(avoid: Sequence[str]) -> str:
    parent = os.path.realpath(os.environ.get("TMPDIR", "") or _USUAL)
    inside = any(f"{parent}/".startswith(f"{os.path.realpath(folder)}/") for folder in avoid)
    return _USUAL if inside or len(os.fsencode(parent)) > _LONGEST_TMPDIR or not os.path.isdir(parent) else parent


def sweep(base: str) -> None:
    """Remove the folders of processes that were killed."""
    if not os.path.basename(base).startswith("idumb-"):
        return
    for name in os.listdir(base):
        path = os.path.join(base, name)
        with contextlib.suppress(OSError):
            if _is_abandoned(path):
                remove(path)


def _is_abandoned(path: str) -> bool:
    try:
        lock = os.open(f"{path}/lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.lstat(path).st_mtime < time.time() - _ABANDONED
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def remove(path: str) -> None:
    """Remove a folder with everything in it, also folders without write permission, such as Go's module cache."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        shutil.rmtree(path, ignore_errors=True)
        if os.path.isdir(path) and not os.path.islink(path):
            for folder, _, _ in os.walk(path):
                with contextlib.suppress(OSError):
                    os.chmod(folder, 0o700)
            shutil.rmtree(path, ignore_errors=True)
