"""Dead letters: permanent failures that wait for a person, and their classes."""

from __future__ import annotations

from collections.abc import Collection

from idumb.domain import failures, outcome
from idumb.domain.failures import PERMANENT, SYSTEM, TRANSIENT

PARKED = "parked"
REMOVED = "removed"
REPLACED = "replaced"
SETTLED = "settled"
STATES = (PARKED, REMOVED, REPLACED, SETTLED)

TASK = "task"
RUN = "run"

_OF_CAUSE = {"resources": SYSTEM, "model-stall": TRANSIENT, "external": TRANSIENT}
_OF_OUTCOME = {outcome.TIMED_OUT: TRANSIENT, outcome.CANCELLED: TRANSIENT, outcome.ERRORED: SYSTEM}


def failure_class(ended: str | None, cause: str | None, failure: str | None) -> str:
    """Return the class of a failed attempt, by its outcome, its cause and its agent's kind of failure.

    The default is `permanent`.
    """
    if failure in failures.KINDS:
        return failures.kind(failure).failure_class
    return _OF_CAUSE.get(cause or "") or _OF_OUTCOME.get(ended or "", PERMANENT)


def run_class(classes: Collection[str]) -> str:
    """Return the class of a run with these failed tasks: the one that is hardest to fix; `system` if no task failed."""
    if not classes:
        return SYSTEM
    return next(candidate for candidate in (SYSTEM, PERMANENT, TRANSIENT) if candidate in classes)


def letter_id(run: str, task: str | None) -> str:
    """Return the run's id, followed by a dot and the task's id if there is one."""
    return run if task is None else f"{run}.{task}"
