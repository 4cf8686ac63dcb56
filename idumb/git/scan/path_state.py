"""The present state of a path, reached through real folders only, and where its links lead."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from typing import NamedTuple

import pygit2

from idumb import lazy_pattern
from idumb.domain.proof.ledger import Entry
from idumb.git.objects.tree_objects import FILE, LINK, PROGRAM
from idumb.git.scan import real_folders


class Present(NamedTuple):
    """The present state of a path. `entry` is None for nothing, for folders and for types that git cannot hold.

    `in_the_way` is a file or link at the place of a folder above the path.
    """

    entry: Entry | None
    status: os.stat_result | None
    in_the_way: str | None = None
    by_link: bool = False

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_odd(self) -> bool:
        """Return whether it is a device, socket or pipe."""
        return self.status is not None and self.entry is None and not self.is_folder


class Step(NamedTuple):
    """One path of a restore: its target (None: nothing) and its present state."""

    path: str
    want: Entry | None
    present: Present


def look(top: int, path: str) -> Present:
    """Return the present state of one path below the open folder `top`."""
    parts = path.split("/")
    try:
        folder = real_folders.open_folder(top, parts[:-1])
    except FileNotFoundError:
        return Present(None, None)
    except OSError:
        return _look_blocked(top, parts)
    try:
        status = os.lstat(parts[-1], dir_fd=folder)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return Present(None, status)
        mode = LINK if stat.S_ISLNK(status.st_mode) else PROGRAM if status.st_mode & 0o100 else FILE
        return Present(Entry(mode, _hash_at(folder, parts[-1], status)), status)
    except FileNotFoundError:
        return Present(None, None)
    finally:
        os.close(folder)


def _hash_at(folder: int, name: str, status: os.stat_result) -> str:
    """Return the id that the file or link `name` in an open folder would get, without writing it. Raises OSError."""
    if stat.S_ISLNK(status.st_mode):
        return str(pygit2.hash(os.fsencode(os.readlink(name, dir_fd=folder))))
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(descriptor).st_size, usedforsecurity=False)
        while chunk := os.read(descriptor, 1 << 20):
            digest.update(chunk)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def _look_blocked(top: int, parts: list[str]) -> Present:
    """Return which parent is not a folder, and whether it is a link."""
    for count in range(1, len(parts)):
        with real_folders.parent(top, parts[:count]) as folder:
            status = os.lstat(parts[count - 1], dir_fd=folder)
        if not stat.S_ISDIR(status.st_mode):
            return Present(None, None, "/".join(parts[:count]), stat.S_ISLNK(status.st_mode))
    return Present(None, None)


_MOST_LINKS = 40  # the system's limit for links in one path; beyond it the links form a loop


def outside_target(root: str, path: str) -> str | None:
    """Return the target of the link that leads `path` out of the working tree at `root`; None if it stays inside.

    An absolute link always leads out, because a clone is elsewhere. A link into git's own folder leads out too.
    """
    return _followed(root, path)[0]


def inside_target(root: str, path: str) -> str | None:
    """Return the existing path below `root` to which links lead `path`; None if it leads out or to nothing."""
    outside, inside = _followed(root, path)
    return inside if outside is None and inside and os.path.lexists(os.path.join(root, inside)) else None


def _followed(root: str, path: str) -> tuple[str | None, str]:
    """Follow link by link, and open nothing. Return the target of the link that leads out, or else the final path."""
    way, here = path.split("/"), list[str]()
    link, followed = "", 0
    while way:
        part = way.pop(0)
        if part in ("", "."):
            continue
        if (part == ".." and not here) or (part.lower() == ".git" and not here):
            return link, ""
        if part == "..":
            here.pop()
            continue
        here.append(part)
        try:
            link = os.readlink(os.path.join(root, *here))
        except OSError:
            continue
        followed += 1
        if os.path.isabs(link):
            return link, ""
        if followed > _MOST_LINKS:
            return None, ""
        here.pop()
        way = [*link.split("/"), *way]
    return None, "/".join(here)


_ABSOLUTE = lazy_pattern.compile(rb"(?<![\w./-])/[^\s\"'`()\[\]{}<>|;:,*?$\\\0]+")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is written there


def places_of_machine(root: str, data: bytes) -> frozenset[str]:
    """Return the absolute paths in a file that exist, and that only this machine is sure to have.

    These are `root` and what is below it, below the home, or in a folder for temporary files.
    """
    above = tuple(f"{folder.rstrip('/')}/" for folder in (os.path.expanduser("~"), tempfile.gettempdir(), *_TEMPORARY))
    places = set[str]()
    for word in _ABSOLUTE.findall(data):
        path = re.sub("/+", "/", os.fsdecode(word)).rstrip("./")
        if (f"{path}/".startswith(f"{root}/") or path.startswith(above)) and os.path.lexists(path):
            places.add(path)
    return frozenset(places)
