"""Where a symbolic link leads, found step by step: nothing is opened, nothing outside the work tree is looked at."""

from __future__ import annotations

import os

_MOST = 40  # links on one way, as the system counts them; more are a circle, which leads nowhere


def target(root: str, path: str) -> str | None:
    """What the link says that leads `path` out of the work tree at `root`; None where it stays inside, there or not.

    An absolute one leads out wherever it points, for a clone lies elsewhere; one into git's own folder does too.
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
