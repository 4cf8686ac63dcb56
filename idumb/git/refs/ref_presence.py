"""Whether refs/idumb holds anything, told by plain file reading: asked before a log is begun, without libgit2."""

from __future__ import annotations

import os

_PREFIX = b" refs/idumb/"


def exist(common_dir: str) -> bool:
    """True when any ref below refs/idumb is there, loose or packed. Raises OSError where it cannot be told."""
    return _loose(os.path.join(common_dir, "refs", "idumb")) or _packed(os.path.join(common_dir, "packed-refs"))


def _loose(folder: str) -> bool:
    return any(not name.endswith(".lock") for _, _, names in os.walk(folder) for name in names)


def _packed(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return any(_PREFIX in line for line in stream)
    except FileNotFoundError:
        return False
