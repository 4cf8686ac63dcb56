"""What is in a checkout and not in its tree: found and removed below open folders, never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from idumb.domain import paths
from idumb.system.files import private_folders

GIT = ".git"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Kept(NamedTuple):
    """The paths that stay: those of the tree, and `paths`; what `is_cached`, if it is not newer than `since` (ns)."""

    tracked: Collection[str]
    paths: Collection[str] = ()
    is_cached: Callable[[str], bool] = lambda _: False
    since: int = 0


def sweep(root: int, kept: Kept) -> tuple[list[str], tuple[str, ...]]:
    """Remove everything else below the open folder `root`. Return the removed paths, and the topmost caches that stay.

    Raises OSError if something cannot be removed.
    """
    removed, caches = list[str](), set[str]()
    for other in _others(root, kept):
        if other.cache:
            caches.add(other.cache)
            continue
        folder = _opened(root, other.folder)
        try:
            private_folders.remove_at(other.name, folder)
        finally:
            os.close(folder)
        removed.append(os.path.join(other.folder, other.name))
    return removed, tuple(sorted(caches))


def present(root: int, kept: Kept) -> set[str]:
    """Return the topmost paths that are neither in the tree nor kept."""
    return {os.path.join(other.folder, other.name) for other in _others(root, kept) if not other.cache}


class _Other(NamedTuple):
    """A path that is not kept; `cache` is the topmost path of the cache that holds it, if it stays."""

    folder: str
    name: str
    cache: str = ""


def _others(root: int, kept: Kept) -> Iterator[_Other]:
    own = {folder for path in (*kept.tracked, *kept.paths) for folder in paths.folders_above(path)}
    stack = [("", "")]
    while stack:
        folder, cache = stack.pop()
        opened = _opened(root, folder)
        try:
            with os.scandir(opened) as entries:
                rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for name, is_folder in rows:
                path = os.path.join(folder, name)
                if path in kept.tracked or (is_folder and path in own):
                    stack += [(path, "")] if is_folder else []
                elif path in kept.paths or path == GIT:
                    continue
                elif cache or kept.is_cached(path) or (is_folder and kept.is_cached(f"{path}/")):
                    if os.stat(name, dir_fd=opened, follow_symlinks=False).st_ctime_ns > kept.since:
                        yield _Other(folder, name)
                    elif is_folder:
                        stack.append((path, cache or path))
                    else:
                        yield _Other(folder, name, cache or path)
                else:
                    yield _Other(folder, name)
        finally:
            os.close(opened)


def _opened(root: int, folder: str) -> int:
    """Open a folder below an open one, step by step. Raises OSError if a step is a link."""
    opened = os.dup(root)
    for name in folder.split("/") if folder else ():
        try:
            below = os.open(name, _FOLDER, dir_fd=opened)
        finally:
            os.close(opened)
        opened = below
    return opened
