"""Whether there is room for what a scan is about to store, told before anything of it is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence

import pygit2

from idumb.domain import errors
from idumb.git.objects import blobs
from idumb.system.files import file_systems

_BLOCK = 4096  # what a file takes at least


def require(repository: pygit2.Repository, paths: Iterable[str]) -> None:
    """Refusal `system.full`, where files at these absolute paths do not fit, `git.file-too-large` for a single one.

    Sizes count as they are, for nobody knows how far git will compress them. What git has already costs nothing; that
    is looked at only where room is short, because it takes reading the files.
    """
    found = [(path, status) for path in paths if (status := _status(path)) is not None]
    for path, status in found:
        blobs.require_size(path, status.st_size)
    if not found:
        return
    known = os.statvfs(repository.path)
    left, files = known.f_bavail * known.f_frsize, known.f_favail if known.f_files else None
    if _fits(found, left, files):
        return
    new = [(path, status) for path, status in found if not _is_stored(repository, path, status)]
    if not _fits(new, left, files):
        raise _full(repository.path, new)


def _status(path: str) -> os.stat_result | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _need(found: Iterable[tuple[str, os.stat_result]]) -> int:
    return sum(max(status.st_size, _BLOCK) for _, status in found)


def _fits(found: Sequence[tuple[str, os.stat_result]], left: int, files: int | None) -> bool:
    return _need(found) <= left and (files is None or len(found) <= files)


def _is_stored(repository: pygit2.Repository, path: str, status: os.stat_result) -> bool:
    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return pygit2.Oid(blobs.hash_at(folder, os.path.basename(path), status)) in repository.odb
        finally:
            os.close(folder)
    except OSError:
        return False  # it is gone or unreadable, which the scan finds out too


def _full(place: str, new: Sequence[tuple[str, os.stat_result]]) -> errors.Refusal:
    largest = max(new, key=lambda one: one[1].st_size)
    return errors.Refusal(
        "system.full",
        f"No room to save the work tree: {len(new)} new or changed files need up to {_need(new)} bytes, the largest"
        f" is {largest[0]}{file_systems.described(place)}",
        hint="Make room, or let git ignore what need not be saved; then say it again",
        details={"path": place, "bytes": _need(new), "files": len(new), "largest": largest[0]},
    )
