"""Where symbolic links lead, and which paths in a file only this machine has."""

from __future__ import annotations

import os
import re
import tempfile


def outside_target(root: str, path: str) -> str | None:
    """Return the target of the link `path` if it leads out of the working tree at `root`; None if it stays inside.

    An absolute link always leads out, because a clone is elsewhere. A link into git's own folder leads out too.
    """
    place = os.path.join(root, path)
    if not os.path.islink(place):
        return None
    target, real = os.readlink(place), os.path.realpath(place)
    is_inside = f"{real}/".startswith(f"{root}/") and not f"{real}/".lower().startswith(f"{root}/.git/".lower())
    return None if is_inside and not os.path.isabs(target) else target


_ABSOLUTE = re.compile(rb"(?<![\w./-])/[^\s\"'`()\[\]{}<>|;:,*?$\\\0]+")
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
