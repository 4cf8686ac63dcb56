"""Follow a symbolic link step by step, without opening anything or looking outside the working tree."""

from __future__ import annotations

import os

_MOST = 40  # the system's limit for links in one path; beyond it the links form a loop


def target(root: str, path: str) -> str | None:
    """Return the target of the link that leads `path` out of the working tree at `root`; None if it stays inside.

    An absolute link always leads out, because a clone is elsewhere. A link into git's own folder leads out too.
    """
    way, here = path.split("/"), list[str]()
    said, followed = "", 0
    while way:
        part = way.pop(0)
        if part in ("", "."):
            continue
        if (part == ".." and not here) or (part.lower() == ".git" and not here):
            return said
        if part == "..":
            here.pop()
            continue
        here.append(part)
        try:
            found = os.readlink(os.path.join(root, *here))
        except OSError:
            continue
        said, followed = found, followed + 1
        if os.path.isabs(said):
            return said
        if followed > _MOST:
            return None
        here.pop()
        way = [*said.split("/"), *way]
    return None
