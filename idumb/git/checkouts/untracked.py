"""What is in a checkout and not in its tree: found, and removed below open folders, never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from idumb.domain import paths
from idumb.git import path_state
from idumb.system import clock
from idumb.system.files import private_folders

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
        parts = path.split("/")
        with path_state.parent(root, parts) as folder:
            private_folders.remove_at(parts[-1], folder)
    return removed, tuple(sorted({other.cache for other in others if other.cache}))


class Clean(NamedTuple):
    """A folder with nothing but files of the tree and the folders `below`, since it `changed` (ns)."""

    changed: int
    below: list[str]


def found(top: str, kept: Kept, clean: dict[str, Clean]) -> Iterator[Other]:
    """Yield the topmost paths below the folder `top` that are not in the tree.

    Folders in `clean`, to which others are added, are not read again until they change.
    """
    above, settled = paths.folders_above(kept.paths), clock.nanoseconds() - clock.TICK
    stack = [("", "")]
    while stack:
        folder, cache = stack.pop()
        place = os.path.join(top, folder)
        changed = os.lstat(place).st_ctime_ns
        if folder in clean and clean[folder].changed == changed:
            stack += [(path, "") for path in clean[folder].below]
            continue
        prefix, below, is_clean = f"{folder}/" if folder else "", list[str](), changed < settled
        with os.scandir(place) as entries:
            for entry in entries:
                path, is_folder = prefix + entry.name, entry.is_dir(follow_symlinks=False)
                if path in kept.tracked or (is_folder and path in kept.folders):
                    below += [path] if is_folder else []
                    continue
                is_clean = False
                if path in kept.paths or path == GIT:
                    continue
                if is_folder and path in above:
                    below.append(path)
                elif not (cache or _is_cached(path, kept, is_folder=is_folder)) or _changed_since(entry, kept.since):
                    yield Other(path)
                elif is_folder:
                    stack.append((path, cache or path))
                else:
                    yield Other(path, cache or path)
        stack += [(path, "") for path in below]
        if is_clean:
            clean[folder] = Clean(changed, below)


def _is_cached(path: str, kept: Kept, *, is_folder: bool) -> bool:
    return kept.is_cached(path) or (is_folder and kept.is_cached(f"{path}/"))


def _changed_since(entry: os.DirEntry[str], since: int) -> bool:
    return entry.stat(follow_symlinks=False).st_ctime_ns > since
