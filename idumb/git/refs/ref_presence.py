"""Whether refs/idumb holds anything, by reading plain files: asked before a log is created, without libgit2."""

from __future__ import annotations

import os

_PREFIX = b" refs/idumb/"


def exist(common_dir: str) -> bool:
    """Return whether any ref below refs/idumb exists, loose or packed. Raises OSError if that cannot be read."""
    return _loose(os.path.join(common_dir, "refs", "idumb")) or _packed(os.path.join(common_dir, "packed-refs"))


def _loose(folder: str) -> bool:
    return any(not name.endswith(".lock") for _, _, names in os.walk(folder) for name in names)


def _packed(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return any(_PREFIX in line for line in stream)
    except FileNotFoundError:
        return False
