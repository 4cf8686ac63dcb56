"""Creates parent folders of declared files, for agents that cannot write into a missing folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from idumb.domain import paths
from idumb.domain.agent import BUILDER, AgentRequest


def made(request: AgentRequest) -> tuple[str, ...]:
    """Create the parent folders of a builder's declared files. Return the new ones, outermost first."""
    if request.role != BUILDER:
        return ()
    found: list[str] = []
    for path in request.allowed_paths:
        if not paths.has_wildcard(path):
            found += _made(request.workspace, os.path.dirname(path).split("/"))
    return tuple(found)


def _made(root: str, names: Sequence[str]) -> list[str]:
    """Create one folder. Do not follow links or replace files: the agent then reports why it cannot write."""
    found, place = [], root
    for name in filter(None, names):
        place = os.path.join(place, name)
        if os.path.islink(place):
            break
        try:
            os.mkdir(place)
            found.append(place)
        except FileExistsError:
            continue
        except OSError:
            break
    return found


def remove_empty(folders: Sequence[str]) -> None:
    """Remove the folders that are still empty, innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
