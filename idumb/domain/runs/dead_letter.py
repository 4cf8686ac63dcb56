"""Dead letters: what failed for good and waits for a person, and of which class the failure is."""

from __future__ import annotations

from collections.abc import Collection

from idumb.domain import agent, outcome

TRANSIENT = "transient"
PERMANENT = "permanent"
SYSTEM = "system"
CLASSES = (TRANSIENT, PERMANENT, SYSTEM)

PARKED = "parked"
REMOVED = "removed"
REPLACED = "replaced"
SETTLED = "settled"
STATES = (PARKED, REMOVED, REPLACED, SETTLED)

TASK = "task"
RUN = "run"

_OF_FAILURE = {
    agent.RATE_LIMITED: TRANSIENT,
    agent.NETWORK: TRANSIENT,
    agent.STALL: TRANSIENT,
    agent.MISSING: SYSTEM,
    agent.NOT_LOGGED_IN: SYSTEM,
    agent.UNKNOWN_MODEL: SYSTEM,
    agent.OVER_BUDGET: SYSTEM,
}
_OF_CAUSE = {"resources": SYSTEM, "model-stall": TRANSIENT, "external": TRANSIENT}
_OF_OUTCOME = {outcome.TIMED_OUT: TRANSIENT, outcome.CANCELLED: TRANSIENT, outcome.ERRORED: SYSTEM}


def failure_class(ended: str | None, cause: str | None, failure: str | None) -> str:
    """The class of a failed attempt, by its outcome, its cause and its agent's kind of failure.

    `transient`: the same may succeed another time. `system`: what it runs on must be mended first. `permanent`: it
    fails again until the plan, the prompt or the files change; that is what everything unknown counts as.
    """
    if failure in agent.FAILURES:
        return _OF_FAILURE.get(failure or "", PERMANENT)
    return _OF_CAUSE.get(cause or "") or _OF_OUTCOME.get(ended or "", PERMANENT)


def run_class(classes: Collection[str]) -> str:
    """Of a run that ended with these failed tasks: the one that is hardest to mend; `system` where none failed."""
    if not classes:
        return SYSTEM
    return next(one for one in (SYSTEM, PERMANENT, TRANSIENT) if one in classes)


def letter_id(run: str, task: str | None) -> str:
    """The run's id, and the task's behind a dot."""
    return run if task is None else f"{run}.{task}"
