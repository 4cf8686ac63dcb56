"""The disk: whether files have room there, asked before the first one is written; and how they are forced to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from idumb.domain import errors
from idumb.system import machine, private_folders

_BLOCK = 4096  # the least space that a file takes


def require_room(sizes: Iterable[int], place: str, largest: str = "") -> None:
    """Refusal `system.full` if files of these sizes do not fit on the file system that holds `place`."""
    rounded = [max(size, _BLOCK) for size in sizes]
    room = machine.room(place)
    if sum(rounded) > room.bytes or (room.files is not None and len(rounded) > room.files):
        named = f"; the largest is {largest}" if largest else ""
        raise errors.Refusal(
            "system.full",
            f"Not enough disk space for {len(rounded)} files of {sum(rounded)} bytes{named}{machine.described(place)}",
            hint="Free disk space, or let git ignore files that need no snapshot; then run the command again",
            details={"path": place, "bytes": sum(rounded), "files": len(rounded), "largest": largest},
        )


def explain(words: str, store: str) -> None:
    """Refusal `system.full` if so little is free that git failed for it; git does not always say so."""
    full = machine.nearly_full(store)
    if full:
        first = words.partition("\n")[0]
        raise errors.Refusal("system.full", f"git: {first}{full}", hint="Free disk space, then try again")


failed: set[str] = set()
"""Files and folders that this process, or a library in it, could not force to disk. The system drops data that it could
not write, so a second fsync would falsely succeed."""


def failed_before(path: str) -> OSError:
    return OSError(errno.EIO, "it could not be forced to disk before", path)


def force(paths: Iterable[str]) -> None:
    """Return when every file and folder is on disk. Raises OSError; a failed fsync is never retried."""
    for path in dict.fromkeys(paths):
        _force(path)


def _force(path: str) -> None:
    if path in failed:
        raise failed_before(path)
    with private_folders.closing(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        try:
            os.fsync(descriptor)
        except OSError as problem:
            problem.filename = path
            failed.add(path)
            raise


def force_below(root: str, paths: Iterable[str]) -> None:
    """Force the files at these paths, relative to `root`, then every folder between them and `root`."""
    places = [os.path.join(root, path) for path in paths]
    folders: dict[str, None] = {}
    for place in places:
        while len(place) > len(root) and (place := os.path.dirname(place)) not in folders:
            folders[place] = None
    # A link has no bytes of its own, and a pipe would block until a writer comes.
    force(place for place in places if os.path.isfile(place) and not os.path.islink(place))
    force(filter(os.path.isdir, folders))


def force_objects(folder: str, names: Iterable[str]) -> None:
    """Force these objects to disk. The program that wrote them may not have done so. `folder` is git's `objects`."""
    paths = [place for name in names if os.path.exists(place := f"{folder}/{name[:2]}/{name[2:]}")]
    force(paths)
    force({folder, *map(os.path.dirname, paths)} if paths else ())
