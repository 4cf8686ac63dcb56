"""Is there enough disk space for the objects of a scan? Asked before git writes the first one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping

import pygit2

from idumb.domain import errors
from idumb.system.files import file_systems

_BLOCK = 4096  # the least space that a file takes


def require(places: Iterable[bytes], store: str, has: Callable[[pygit2.Oid], bool]) -> None:
    """Refusal `system.full` if these files do not fit beside `store`. Sizes are those before git compresses them.

    What the store `has` already costs nothing; that is asked only if space is short, because the files must be read.
    """
    files = {place: status for place in places if (status := _status(place)) is not None}
    volume = os.statvfs(store)
    free, most = volume.f_bavail * volume.f_frsize, volume.f_favail if volume.f_files else len(files)
    if _fits(files, free, most):
        return
    new = {place: status for place, status in files.items() if not _is_stored(place, has)}
    if _fits(new, free, most):
        return
    largest, need = os.fsdecode(max(new, key=lambda place: new[place].st_size)), _need(new)
    raise errors.Refusal(
        "system.full",
        f"Not enough disk space to save the working tree: {len(new)} new or changed files need {need} bytes;"
        f" the largest is {largest}{file_systems.described(store)}",
        hint="Free disk space, or let git ignore files that need no snapshot; then run the command again",
        details={"path": store, "bytes": need, "files": len(new), "largest": largest},
    )


def require_room(sizes: Iterable[int], place: str) -> None:
    """Refusal `system.full` if files of these sizes do not fit on the file system that holds `place`."""
    rounded = [max(size, _BLOCK) for size in sizes]
    room = file_systems.room(place)
    if sum(rounded) > room.bytes or (room.files is not None and len(rounded) > room.files):
        raise errors.Refusal(
            "system.full",
            f"Not enough disk space for {len(rounded)} files of {sum(rounded)} bytes{file_systems.described(place)}",
            hint="Free disk space, then run the command again",
            details={"path": place, "bytes": sum(rounded), "files": len(rounded)},
        )


def explain(words: str, store: str) -> None:
    """Refusal `system.full` if so little is free that git failed for it; git does not always say so."""
    full = file_systems.nearly_full(store)
    if full:
        first = words.partition("\n")[0]
        raise errors.Refusal("system.full", f"git: {first}{full}", hint="Free disk space, then try again")


def _fits(files: Mapping[bytes, os.stat_result], free: int, most: int) -> bool:
    return _need(files) <= free and len(files) <= most


def _need(files: Mapping[bytes, os.stat_result]) -> int:
    return sum(max(status.st_size, _BLOCK) for status in files.values())


def _status(place: bytes) -> os.stat_result | None:
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _is_stored(place: bytes, has: Callable[[pygit2.Oid], bool]) -> bool:
    try:
        if os.path.islink(place):
            return has(pygit2.hash(os.readlink(place)))
        return has(pygit2.hashfile(os.fsdecode(place)))
    except (OSError, pygit2.GitError):
        return False
