"""Which file system holds a path, and how much space is free there."""

from __future__ import annotations

import os
from typing import NamedTuple

# A failed write releases its space, so some is free again afterwards.
_FEW_BYTES = 1 << 20
_FEW_FILES = 64


class Room(NamedTuple):
    """What an unprivileged user can still write. `files` is None if the file system has no such limit."""

    mount: str
    bytes: int
    files: int | None


def room(path: str) -> Room:
    """Return the free space of the file system that holds `path`, or would. Raises OSError."""
    existing = _existing(os.path.abspath(path))
    numbers = os.statvfs(existing)
    return Room(_mount(existing), numbers.f_bavail * numbers.f_frsize, numbers.f_favail if numbers.f_files else None)


def _existing(path: str) -> str:
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _mount(path: str) -> str:
    """Return the nearest folder at which something is mounted."""
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def described(path: str) -> str:
    """Return ` (/home has 0 bytes and 12 files free)`, to follow a message; "" if unknown."""
    try:
        return _words(room(path))
    except OSError:
        return ""


def nearly_full(path: str) -> str:
    """Return the same if little enough is free to explain a failed write; else ""."""
    try:
        free = room(path)
    except OSError:
        return ""
    few = free.files is not None and free.files < _FEW_FILES
    return _words(free) if few or free.bytes < _FEW_BYTES else ""


def _words(free: Room) -> str:
    files = "" if free.files is None else f" and {free.files} files"
    return f" ({free.mount} has {free.bytes} bytes{files} free)"


def kind_of(path: str) -> str:
    """Return the system's name of the type of the file system that holds `path`, or would; "" if unknown."""
    real = f"{os.path.realpath(_existing(path))}/"
    above = [(mount, kind) for mount, kind in reversed(mounts()) if real.startswith(f"{mount.rstrip('/')}/")]
    return max(above, key=lambda row: len(row[0]), default=("", ""))[1]


def mounts() -> list[tuple[str, str]]:
    """Return where something is mounted, and its type, the latest last."""
    import psutil

    return [(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]
