"""Finds programs of the user: on PATH, and never in a repository, where a task could put its own."""

from __future__ import annotations

import os
from collections.abc import Iterator


def outside(name: str, root: str | None) -> Iterator[str]:
    """Yield the programs of this name in the absolute folders of PATH that are not in `root` and do not lead there.

    Every program is below `/`; questions that concern no working tree are asked there.
    """
    top = os.path.realpath(root) if root else os.sep
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(folder, name)
        is_inside = top != os.sep and os.path.realpath(program).startswith(top + os.sep)
        if os.path.isabs(folder) and not is_inside and os.path.isfile(program) and os.access(program, os.X_OK):
            yield program
