"""Open and create folders below the root by descriptors that follow no link, so that no path leads outside."""

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


def present(root: str, folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        path for path in folders if os.path.isdir(place := os.path.join(root, path)) and not os.path.islink(place)
    )


def force(root: str, changed: set[str]) -> None:
    durable_files.force(place for folder in sorted(changed) if os.path.isdir(place := os.path.join(root, folder)))
