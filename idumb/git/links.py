"""Where symbolic links lead, and which paths in a file only this machine has."""

from __future__ import annotations

import os
import re
import tempfile

from idumb import lazy_pattern

_MOST_LINKS = 40  # the system's limit for links in one path; beyond it the links form a loop


def outside_target(root: str, path: str) -> str | None:
    """Return the target of the link that leads `path` out of the working tree at `root`; None if it stays inside.

    An absolute link always leads out, because a clone is elsewhere. A link into git's own folder leads out too. Links
    are followed one by one, and nothing is opened.
    """
    way, here = path.split("/"), list[str]()
    link, followed = "", 0
    while way:
        part = way.pop(0)
        if part in ("", "."):
            continue
        if not here and (part == ".." or part.lower() == ".git"):
            return link
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
            return link
        if followed > _MOST_LINKS:
            return None
        here.pop()
        way = [*link.split("/"), *way]
    return None


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
