"""Names programs and packages outside the tree that changed since a run began: a builder may have written them.

It compares only the times at which files changed, which no program can set back without changing the machine's clock.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from idumb.domain.plans import commands
from idumb.system.private_folders import MANIFESTS

_SYSTEM = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/sbin"})
"""Folders in which only an administrator installs programs."""
_ABOVE = (*(name for name in MANIFESTS if name != ".git"), ".cargo/config.toml")
"""What tools search for in every folder above the tree, and what decides what they run or load then."""
_MOST = 20
"""A package manager may install hundreds of programs."""


def names(
    command: str, search_path: Sequence[str], files: Iterable[str], above: Iterable[str], since: int, base: str = ""
) -> tuple[str, ...]:
    """Return the paths that can decide what `command` runs and that changed after `since`, in nanoseconds.

    These are programs in `search_path`, the packages of its Python and of the folder `base`, programs that the command
    names by a whole path, `files`, and manifests in the folders `above` the tree.
    """
    own = (word for word in commands.read(command).programs if word.startswith("/"))
    manifests = (f"{folder}/{name}" for folder in above for name in _ABOVE)
    paths = itertools.chain(own, _programs(search_path, since), _packages(search_path, base), files, manifests)
    changed = dict.fromkeys(path for path in paths if _changed_at(path) > since)
    return tuple(changed)[:_MOST]


def _programs(search_path: Sequence[str], since: int) -> Iterator[str]:
    for folder in search_path:
        if folder not in _SYSTEM:
            paths = [f"{folder}/{name}" for name in _list(folder)]
            yield from [folder] if os.path.islink(folder) else ()
            yield from (p for p in paths if _changed_at(p) > since and os.path.isfile(p) and os.access(p, os.X_OK))


def _packages(search_path: Sequence[str], base: str) -> Iterator[str]:
    """Yield the folders of packages of the interpreters on PATH, and those below `base`."""
    programs = (os.path.realpath(f"{folder}/python3") for folder in search_path if folder not in _SYSTEM)
    prefixes = (os.path.dirname(os.path.dirname(program)) for program in programs if os.path.exists(program))
    for prefix in (*prefixes, *([base] if base else ())):
        names_in = _list(f"{prefix}/lib")
        yield from (f"{prefix}/lib/{name}/site-packages" for name in names_in if name.startswith("python3"))


def _list(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _changed_at(path: str) -> int:
    """Return when a path, or what it leads to, last changed, in nanoseconds; 0 if it leads nowhere."""
    try:
        return max(os.lstat(path).st_ctime_ns, os.stat(path).st_ctime_ns)
    except OSError:
        return 0
