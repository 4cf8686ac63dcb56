"""Derive causes and results from the statuses of all tasks."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import outcome
from idumb.domain.contract import Contract

_BLOCKING = frozenset({outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED})
_MOST_CAUSES = 5


def causes(contract: Contract, standing: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, for each blocked task, the failed or skipped tasks at its root (at most five)."""
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


def with_status(standing: Mapping[str, str], *statuses: str) -> tuple[str, ...]:
    """Return the ids of tasks with one of the statuses, in execution order."""
    return tuple(task_id for task_id, status in standing.items() if status in statuses)


def result(standing: Mapping[str, str]) -> str:
    """Return iDumb's result of a run: pass, partial or fail (nothing done)."""
    done = len(with_status(standing, *outcome.DONE, outcome.SKIPPED))
    if done == len(standing):
        return "pass"
    return "partial" if done else "fail"
