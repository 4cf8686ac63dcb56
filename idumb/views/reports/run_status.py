"""Derive causes, results and `progress.json` from the statuses of all tasks."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState
from idumb.views import markup

_BLOCKING = frozenset({outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED})
_MOST_CAUSES = 5


def causes(contract: Contract, standing: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, for each blocked task, the failed or skipped tasks at its root (at most five)."""
    roots_by_task: dict[str, tuple[str, ...]] = {}
    for task_id, status in standing.items():
        if status != outcome.BLOCKED:
            continue
        roots: list[str] = []
        for needed in contract.dependencies[task_id]:
            at = standing.get(needed)
            roots.extend(roots_by_task.get(needed, (needed,) if at in _BLOCKING else ()))
        roots_by_task[task_id] = tuple(dict.fromkeys(roots))[:_MOST_CAUSES]
    return roots_by_task


def with_status(standing: Mapping[str, str], *statuses: str) -> tuple[str, ...]:
    """Return the ids of tasks with one of the statuses, in execution order."""
    return tuple(task_id for task_id, status in standing.items() if status in statuses)


def result(standing: Mapping[str, str]) -> str:
    """Return iDumb's result of a run: pass, partial or fail (nothing done)."""
    done = len(with_status(standing, *outcome.ENDED))
    if done == len(standing):
        return "pass"
    return "partial" if done else "fail"


def progress(state: RunState, where: Mapping[str, str]) -> str:
    """Return `progress.json`, with lists of task ids in execution order; `where` comes from `schedule.statuses`.

    `completed` includes accepted tasks, so that a resume skips them.
    """

    def ids(*statuses: str) -> list[str]:
        return list(with_status(where, *statuses))

    current, omitted = ids(outcome.RUNNING), ids(outcome.OMITTED)
    fields = {
        "completed": ids(*outcome.DONE),
        "failed": ids(outcome.FAILED),
        "blocked": ids(outcome.BLOCKED),
        "started_at": state.started_at,
        "git_hash": state.git_hash or "no-git",
        "accepted": ids(outcome.ACCEPTED),
        "skipped": ids(outcome.SKIPPED),
        **({"omitted": omitted} if omitted else {}),
        "waiting": ids(outcome.WAITING),
        "remaining": ids(outcome.READY, outcome.PENDING),
        "carried": [t for t in where if t in state.tasks and state.tasks[t].carried_from],
        "current": current[0] if current else None,
        "phase": state.phase,
        "run": state.id,
        "state": state.state,
        "reason": state.reason,
        "contract_hash": state.contract.hash,
        "updated_at": state.moved_at,
    }
    return markup.json_text(fields)
