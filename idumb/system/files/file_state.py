"""The state of a file outside the repository, compared without reading it while its times are unchanged."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass

Signature = tuple[int, ...]

_MOST_READ = 1 << 20
"""Larger files count as changed if their times change; reading a big program would cost more than a check."""

_GRAIN = 20_000_000
"""Nanoseconds within which a second write to a file may not show in its times."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's signature and digest. Both are "" or () for a missing file; no digest for a file that was not read.

    `settled` is false if the file changed so recently that its signature cannot show another change.
    """

    signature: Signature
    digest: str
    settled: bool


def now() -> int:
    """Return the time of the clock that files get their times from, in nanoseconds."""
    return time.time_ns()


def signature_of(path: str) -> Signature:
    """Return device, inode, type, size and times of what a path leads to; () if nothing is there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    facts = (status.st_dev, status.st_ino, status.st_mode, status.st_size)
    return (*facts, status.st_mtime_ns, max(status.st_mtime_ns, status.st_ctime_ns))


def is_settled(signature: Signature) -> bool:
    return not signature or signature[-1] < time.time_ns() - _GRAIN


def state(path: str) -> FileState:
    signature = signature_of(path) if path else ()
    return FileState(signature, _digest(path, signature), is_settled(signature))


def _digest(path: str, signature: Signature) -> str:
    if not signature or not stat.S_ISREG(signature[2]) or signature[3] > _MOST_READ:
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(_MOST_READ + 1)).hexdigest()
    except OSError:
        return "unreadable"


def is_same(path: str, known: FileState) -> bool:
    """Return whether a file is as recorded, reading it only if its signature does not show that."""
    signature = signature_of(path) if path else ()
    if signature == known.signature and known.settled:
        return True
    if not signature or not known.signature or not known.digest:
        return signature == known.signature
    return _digest(path, signature) == known.digest
