"""Where a path is kept, and how much room is left there."""

from __future__ import annotations

import os
from typing import NamedTuple

# What failed gives back what it had taken, so some is left again when somebody looks.
_FEW_BYTES = 1 << 20
_FEW_FILES = 64


class Room(NamedTuple):
    """What a user without privileges can still write. `files` is None where the file system has no such limit."""

    mount: str
    bytes: int
    files: int | None


def room(path: str) -> Room:
    """Of the file system that holds `path`, or would. Raises OSError."""
    known = _existing(os.path.abspath(path))
    found = os.statvfs(known)
    return Room(_mount(known), found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def _existing(path: str) -> str:
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _mount(path: str) -> str:
    """The uppermost folder on the same device."""
    device = os.lstat(path).st_dev
    while (above := os.path.dirname(path)) != path and os.lstat(above).st_dev == device:
        path = above
    return path


def described(path: str) -> str:
    """` (/home has 0 bytes and 12 files free)`, to follow a message; empty where it cannot be told."""
    try:
        return _words(room(path))
    except OSError:
        return ""


def nearly_full(path: str) -> str:
    """The same where so little is left that it explains why something could not be written; else empty."""
    try:
        found = room(path)
    except OSError:
        return ""
    few = found.files is not None and found.files < _FEW_FILES
    return _words(found) if few or found.bytes < _FEW_BYTES else ""


def _words(found: Room) -> str:
    files = "" if found.files is None else f" and {found.files} files"
    return f" ({found.mount} has {found.bytes} bytes{files} free)"


def kind_of(path: str) -> str:
    """The type of the file system that holds `path`, as the system calls it; "" where it does not tell."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    real, best = os.path.realpath(path), ("", "")
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as stream:
            rows = [line.split(" ")[1:3] for line in stream]
    except OSError:
        return ""
    for raw, kind in rows:
        mount = raw.encode("utf-8", "surrogateescape").decode("unicode_escape") if "\\" in raw else raw
        if (real + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]
