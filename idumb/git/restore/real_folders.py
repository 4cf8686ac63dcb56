"""Open, create and remove folders below the root by descriptors that follow no link, so that no path leads outside.

Git's trees cannot hold empty folders, so these are created and removed by name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from idumb.git.objects import durable_files

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(top: int, parts: Iterable[str], gained: set[str] | None = None) -> int:
    """Return a descriptor of a folder below `top`; the caller closes it. Only real folders are followed.

    With `gained`, missing folders are created, and the folders that gained an entry are added to it.
    """
    here, path = os.dup(top), ""
    for part in parts:
        try:
            below = _open_part(here, part, path, gained)
        finally:
            os.close(here)
        here, path = below, f"{path}/{part}".lstrip("/")
    return here


def _open_part(here: int, part: str, path: str, gained: set[str] | None) -> int:
    try:
        return os.open(part, FOLDER_FLAGS, dir_fd=here)
    except FileNotFoundError:
        if gained is None:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    gained.add(path)
    return os.open(part, FOLDER_FLAGS, dir_fd=here)


@contextlib.contextmanager
def parent(top: int, parts: list[str], gained: set[str] | None = None) -> Iterator[int]:
    """Return a descriptor of the folder that holds the last of `parts`."""
    folder = open_folder(top, parts[:-1], gained)
    try:
        yield folder
    finally:
        os.close(folder)


def leaves(top: int, path: str) -> Iterator[str]:
    """Return the paths of everything below a folder that is not itself a folder."""
    stack = [path]
    while stack:
        here = stack.pop()
        folder = open_folder(top, here.split("/"))
        try:
            with os.scandir(folder) as listing:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
        finally:
            os.close(folder)
        for name, is_folder in entries:
            if is_folder:
                stack.append(f"{here}/{name}")
            else:
                yield f"{here}/{name}"


def missing(root: str, folders: Iterable[str]) -> tuple[str, ...]:
    """Return which of the folders and their parents are missing, outer ones first."""
    leading = dict.fromkeys(path for folder in folders for path in _leading(folder))
    return tuple(path for path in leading if not os.path.lexists(os.path.join(root, path)))


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
                os.close(open_folder(top, folder.split("/"), changed))
    force(root, changed)


def remove(root: str, folders: Iterable[str]) -> None:
    """Remove the folders that are empty, inner ones first."""
    changed: set[str] = set()
    with _opened(root) as top:
        for folder in sorted(folders, reverse=True):
            parts = folder.split("/")
            with contextlib.suppress(OSError), parent(top, parts) as above:
                os.rmdir(parts[-1], dir_fd=above)
                changed.add("/".join(parts[:-1]))
    force(root, changed)


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


def force(root: str, changed: set[str]) -> None:
    durable_files.force(place for folder in sorted(changed) if os.path.isdir(place := os.path.join(root, folder)))
