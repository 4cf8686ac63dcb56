"""Create and remove empty folders, which git's trees cannot hold: by name, below the root, through no link."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from idumb.git.objects import durable_files
from idumb.git.scan import open_folder


def missing(root: str, folders: Iterable[str]) -> tuple[str, ...]:
    """Return which of the folders and their parents are missing, outer ones first."""
    found = dict.fromkeys(path for folder in folders for path in _leading(folder))
    return tuple(path for path in found if not os.path.lexists(os.path.join(root, path)))


def present(root: str, folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        path for path in folders if os.path.isdir(place := os.path.join(root, path)) and not os.path.islink(place)
    )


def make(root: str, folders: Iterable[str]) -> None:
    """Create the missing folders. Anything else at such a path stays."""
    changed: set[str] = set()
    with _opened(root) as top:
        for folder in folders:
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                os.close(open_folder.open_folder(top, folder.split("/"), changed))
    _force(root, changed)


def remove(root: str, folders: Iterable[str]) -> None:
    """Remove the folders that are empty, inner ones first."""
    changed: set[str] = set()
    with _opened(root) as top:
        for folder in sorted(folders, reverse=True):
            parts = folder.split("/")
            with contextlib.suppress(OSError), open_folder.parent(top, parts) as above:
                os.rmdir(parts[-1], dir_fd=above)
                changed.add("/".join(parts[:-1]))
    _force(root, changed)


def _leading(folder: str) -> Iterator[str]:
    parts = folder.rstrip("/").split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


@contextlib.contextmanager
def _opened(root: str) -> Iterator[int]:
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)


def _force(root: str, changed: set[str]) -> None:
    durable_files.force(place for folder in sorted(changed) if os.path.isdir(place := os.path.join(root, folder)))
