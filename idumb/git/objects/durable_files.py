"""Force files and folders to disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

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
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        problem.filename = path
        failed.add(path)
        raise
    finally:
        os.close(descriptor)


def force_below(root: str, paths: Iterable[str]) -> None:
    """Force the files at these paths, relative to `root`, then every folder between them and `root`."""
    places = [os.path.join(root, path) for path in paths]
    folders: dict[str, None] = {}
    for place in places:
        while len(place) > len(root) and (place := os.path.dirname(place)) not in folders:
            folders[place] = None
    force(place for place in places if _is_file(place))
    force(folder for folder in folders if os.path.isdir(folder))


def force_objects(folder: str, names: Iterable[str]) -> None:
    """Force these objects to disk. The program that wrote them may not have done so. `folder` is git's `objects`."""
    paths = [place for name in names if os.path.exists(place := f"{folder}/{name[:2]}/{name[2:]}")]
    force(paths)
    force({folder, *map(os.path.dirname, paths)} if paths else ())


def _is_file(path: str) -> bool:
    """Skip links, which have no bytes of their own, and pipes, which would block until a writer comes."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
