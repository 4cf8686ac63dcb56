"""Detects whether another program may be using a file, before an apparently stale file is removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator


def may_be_at_work(program: str, places: Iterable[str], path: str) -> bool:
    """Return whether a live process could have created `path`.

    Such a process runs a program whose name begins with `program` and works in one of `places`, or has `path` open.
    Processes of users other than the file's owner are excluded. Returns True if the system does not show this.
    """
    if not sys.platform.startswith("linux"):
        return True
    try:
        owner = os.lstat(path).st_uid
    except FileNotFoundError:
        return False
    roots = tuple(os.path.realpath(place) for place in places)
    return any(_stands(pid, program, roots) or _holds(pid, path) for pid in _of(owner))


def _of(owner: int) -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                if os.stat(f"/proc/{name}").st_uid == owner:
                    yield int(name)
            except OSError:
                continue


def _stands(pid: int, program: str, roots: tuple[str, ...]) -> bool:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            if not stream.read().startswith(program):
                return False
        where = os.readlink(f"/proc/{pid}/cwd")
    except FileNotFoundError:
        return False  # ended, or a zombie
    except OSError:
        return True
    return any(where == root or where.startswith(f"{root.rstrip('/')}/") for root in roots)


def _holds(pid: int, path: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{one}") == path for one in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
