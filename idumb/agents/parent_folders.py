"""Folders for the files that a task declares, made for agents that write no file into a folder that is not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from idumb.domain import paths
from idumb.domain.agent import BUILDER, AgentRequest


def made(request: AgentRequest) -> tuple[str, ...]:
    """Make the folders that a builder's declared files lie in; those that were not there, the outer ones first."""
    if request.role != BUILDER:
        return ()
    found: list[str] = []
    for path in request.allowed_paths:
        if not paths.has_wildcard(path):
            found += _made(request.workspace, os.path.dirname(path).split("/"))
    return tuple(found)


def _made(root: str, names: Sequence[str]) -> list[str]:
    """No link is followed, and what is no folder is left as it is: then the agent says why it cannot write."""
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
    """Remove those in which nothing was written, the inner ones first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
