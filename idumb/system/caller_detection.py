"""Whether this process runs inside an agent or a check that idumb started: they carry marks, and what they start too.

The marks tell honest programs apart from people, and stop no hostile one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from idumb.system.processes import process_tree
from idumb.system.processes.child_process import PLACE_COOKIE

_ROLE, _SUBJECT = "IDUMB_ROLE", "IDUMB_TASK"


@dataclass(frozen=True, slots=True)
class Mark:
    """`folder` is the workspace in which the marked process works, `who` what it is for people."""

    folder: str
    who: str


def own() -> Mark | None:
    """The mark in this process's environment; None without one."""
    return _mark(os.environ.get)


def above() -> Iterator[Mark]:
    """The marks that processes above this one were started with, the nearest first; none where the system tells none.

    Who takes the mark out of its own environment leaves it there.
    """
    for pid in process_tree.ancestors(os.getpid()):
        known = {name: process_tree.variable(pid, name.encode()) for name in (PLACE_COOKIE, _ROLE, _SUBJECT)}
        found = _mark({name: os.fsdecode(value) for name, value in known.items() if value is not None}.get)
        if found is not None:
            yield found


def ancestors() -> frozenset[int]:
    """The ids of the processes above this one."""
    return frozenset(process_tree.ancestors(os.getpid()))


def _mark(variable: Callable[[str], str | None]) -> Mark | None:
    place = variable(PLACE_COOKIE)
    if place is None:
        return None
    role, subject = variable(_ROLE), variable(_SUBJECT)
    return Mark(place.partition("@")[2], f"the {role} of {subject}" if role and subject else "a check")
