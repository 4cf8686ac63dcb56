"""Detects whether this process runs inside an agent or a check that idumb started, by marks that children inherit.

The marks tell honest programs from people. They do not stop a hostile program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from idumb.lazy_dataclass import dataclass
from idumb.system.processes import process_tree
from idumb.system.processes.child_process import PLACE_COOKIE

_ROLE, _SUBJECT = "IDUMB_ROLE", "IDUMB_TASK"


@dataclass(frozen=True, slots=True)
class Mark:
    """`folder` is the project for which the marked process was started, `who` its description for the user."""

    folder: str
    who: str


def own() -> Mark | None:
    """Return the mark in this process's environment, or None."""
    return _mark(os.environ.get)


def above() -> Iterator[Mark]:
    """Return the marks of the ancestor processes, nearest first; none if the system does not show them.

    A program that removes the mark from its own environment cannot remove it from its ancestors'.
    """
    for pid in process_tree.ancestors(os.getpid()):
        variables = {name: process_tree.variable(pid, name.encode()) for name in (PLACE_COOKIE, _ROLE, _SUBJECT)}
        mark = _mark({name: os.fsdecode(value) for name, value in variables.items() if value is not None}.get)
        if mark is not None:
            yield mark


def ancestors() -> frozenset[int]:
    """Return the ids of the ancestor processes."""
    return frozenset(process_tree.ancestors(os.getpid()))


def _mark(variable: Callable[[str], str | None]) -> Mark | None:
    place = variable(PLACE_COOKIE)
    if place is None:
        return None
    role, subject = variable(_ROLE), variable(_SUBJECT)
    return Mark(place.partition("@")[2], f"the {role} of {subject}" if role and subject else "a check")
