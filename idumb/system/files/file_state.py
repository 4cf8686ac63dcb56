"""The state of a file outside the repository, compared without reading it while its times are unchanged."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def as_list(self) -> list[Any]:
        return [list(self.signature), self.digest, self.settled]

    @classmethod
    def from_list(cls, row: Sequence[Any]) -> FileState:
        signature, digest, settled = row
        return cls(tuple(map(int, signature)), str(digest), bool(settled))


def now() -> int:
    """Return the time of the clock that files get their times from, in nanoseconds."""
    return time.time_ns()


def signature_of(path: str) -> Signature:
    """Return inode, type, size and times of what a path leads to; () if nothing is there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    # The device's number may be another one after a restart of the machine.
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def changed_at(state: FileState) -> int:
    """Return when the file last changed, in nanoseconds; 0 for a missing file. No program can set this time back."""
    return state.signature[-1] if state.signature else 0


def _is_settled(signature: Signature) -> bool:
    return not signature or signature[-1] < time.time_ns() - _GRAIN


def state(path: str) -> FileState:
    signature = signature_of(path) if path else ()
    return FileState(signature, _digest(path, signature), _is_settled(signature))


def _digest(path: str, signature: Signature) -> str:
    if not signature or not stat.S_ISREG(signature[1]) or signature[2] > _MOST_READ:
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(_MOST_READ + 1)).hexdigest()
    except OSError:
        return "unreadable"


def differing(known: Mapping[str, FileState]) -> tuple[str, ...]:
    """Return the paths whose files are not as recorded; it reads only those whose signatures differ."""
    return tuple(path for path, state in known.items() if not is_same(path, state))


def signatures(paths: Iterable[str]) -> dict[str, Signature] | None:
    """Return the signature of each path; None if one changed so recently that its next change may not show."""
    found = {path: signature_of(path) for path in paths}
    return found if all(map(_is_settled, found.values())) else None


def is_same(path: str, known: FileState) -> bool:
    """Return whether a file is as recorded, reading it only if its signature does not show that."""
    signature = signature_of(path) if path else ()
    if signature == known.signature and known.settled:
        return True
    if not signature or not known.signature or not known.digest:
        return signature == known.signature
    return _digest(path, signature) == known.digest
