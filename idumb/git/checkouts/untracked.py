"""What is in a checkout and not in its tree: found and removed below open folders, never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from idumb.domain import paths
from idumb.system.files import atomic_write, private_folders

GIT = ".git"


class Kept(NamedTuple):
    """The paths that stay.

    - `tracked` and `folders` are those of the tree.
    - `paths` are others.
    - What `is_cached` stays if it is not newer than `since` (ns).
    """

    tracked: Collection[str]
    folders: Collection[str]
    paths: Collection[str] = ()
    is_cached: Callable[[str], bool] = lambda _: False
    since: int = 0


class Other(NamedTuple):
    """A path that is not kept; `cache` is the topmost path of the cache that holds it, if it stays."""

    path: str
    cache: str = ""


def remove(root: int, others: Sequence[Other]) -> tuple[list[str], tuple[str, ...]]:
    """Remove them below the open folder `root`. Return the removed paths, and the topmost caches that stay.

    Raises OSError if something cannot be removed.
    """
    removed = [other.path for other in others if not other.cache]
    for path in removed:
        above, _, name = path.rpartition("/")
        folder = atomic_write.open_folder(root, filter(None, above.split("/")))
        try:
            private_folders.remove_at(name, folder)
        finally:
            os.close(folder)
    return removed, tuple(sorted({other.cache for other in others if other.cache}))


def found(root: int, kept: Kept) -> Iterator[Other]:
    """Yield the topmost paths below the open folder `root` that are not in the tree."""
    above = paths.folders_above(kept.paths)
    stack = [("", "")]
    while stack:
        folder, cache = stack.pop()
        opened = atomic_write.open_folder(root, filter(None, folder.split("/")))
        try:
            with os.scandir(opened) as entries:
                rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            prefix = f"{folder}/" if folder else ""
            for name, is_folder in rows:
                path = prefix + name
                if path in kept.tracked or (is_folder and (path in kept.folders or path in above)):
                    stack += [(path, "")] if is_folder else []
                elif path in kept.paths or path == GIT:
                    continue
                elif cache or kept.is_cached(path) or (is_folder and kept.is_cached(f"{path}/")):
                    if os.stat(name, dir_fd=opened, follow_symlinks=False).st_ctime_ns > kept.since:
                        yield Other(path)
                    elif is_folder:
                        stack.append((path, cache or path))
                    else:
                        yield Other(path, cache or path)
                else:
                    yield Other(path)
        finally:
            os.close(opened)
