"""What follows from the statuses of all tasks, as `schedule.statuses` gives them, for a reader."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import outcome
from idumb.domain.contract import Contract

_BLOCKING = frozenset({outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED})
_MOST_CAUSES = 5


def causes(contract: Contract, standing: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Blocked task to the failed or skipped tasks at the root of it (at most five), however far away they are."""
    found: dict[str, tuple[str, ...]] = {}
    for task_id, status in standing.items():
        if status != outcome.BLOCKED:
            continue
        roots: list[str] = []
        for needed in contract.dependencies[task_id]:
            at = standing.get(needed)
            roots.extend(found.get(needed, (needed,) if at in _BLOCKING else ()))
        found[task_id] = tuple(dict.fromkeys(roots))[:_MOST_CAUSES]
    return found


def of(standing: Mapping[str, str], *wanted: str) -> tuple[str, ...]:
    """Ids of the tasks with one of the statuses, in execution order."""
    return tuple(task_id for task_id, status in standing.items() if status in wanted)


def result(standing: Mapping[str, str]) -> str:
    """The word of iDumb for a run as a whole: pass, partial or fail (nothing done)."""
    done = len(of(standing, *outcome.DONE, outcome.SKIPPED))
    if done == len(standing):
        return "pass"
    return "partial" if done else "fail"
