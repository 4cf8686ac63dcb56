"""What a restore of a file does not restore: hard links and extended attributes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator

from idumb.domain import wording
from idumb.git.scan.path_state import Step

# The system's own policy sets these again.
_SYSTEM = frozenset({"security.selinux", "security.ima", "security.evm", "security.SMACK64"})


def told(root: str, steps: Iterable[Step]) -> Iterator[str]:
    """Return a line for each file to be replaced or removed that is more than its bytes and mode."""
    for step in steps:
        status = step.present.status
        if step.present.entry == step.want or status is None or not stat.S_ISREG(status.st_mode):
            continue
        if status.st_nlink > 1:
            done = "removed" if step.want is None else "replaced by a file of its own"
            yield f"{step.path} is one of {status.st_nlink} links and is {done}; the others keep the present bytes"
        names = _attributes(os.path.join(root, step.path))
        if names:
            yield f"{step.path} has extended attributes that are not kept: {wording.listed(names)}"


def _attributes(path: str) -> list[str]:
    if sys.platform != "linux":
        return []  # Python reads them on Linux only
    try:
        return sorted(name for name in os.listxattr(path, follow_symlinks=False) if name not in _SYSTEM)
    except OSError:
        return []
