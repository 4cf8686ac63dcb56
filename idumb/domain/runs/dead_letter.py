"""Dead letters: permanent failures that wait for a person, and their classes."""

from __future__ import annotations

from collections.abc import Collection

from idumb.domain.failures import PERMANENT, SYSTEM, TRANSIENT

PARKED = "parked"
REPLACED = "replaced"
SETTLED = "settled"
STATES = (PARKED, REPLACED, SETTLED)

TASK = "task"
RUN = "run"


def run_class(classes: Collection[str]) -> str:
    """Return the class of a run with these failed tasks: the one that is hardest to fix; `system` if no task failed."""
    if not classes:
        return SYSTEM
    return next(candidate for candidate in (SYSTEM, PERMANENT, TRANSIENT) if candidate in classes)


def letter_id(run: str, task: str | None) -> str:
    """Return the run's id, followed by a dot and the task's id if there is one."""
    return run if task is None else f"{run}.{task}"
