"""Where every task stands: the recorded status, and what follows from the graph (ready, blocked, by what)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.run import RunState

_BLOCKING = frozenset({outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED})
_MOST_CAUSES = 5


def statuses(contract: Contract, state: RunState | None) -> dict[str, str]:
    """Task id to status, in execution order; without a run every task is ready or pending."""
    found: dict[str, str] = {}
    for task_id in contract.order:
        known = state.tasks.get(task_id) if state is not None else None
        status = known.status if known is not None else outcome.PENDING
        if status in {outcome.PENDING, outcome.READY}:
            status = _waiting_status([found[d] for d in contract.dependencies[task_id] if d in found])
        found[task_id] = status
    return found


def _waiting_status(needed: Sequence[str]) -> str:
    if any(status in _BLOCKING for status in needed):
        return outcome.BLOCKED
    return outcome.READY if all(status in outcome.DONE for status in needed) else outcome.PENDING


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
    """The word of iDumb for a run as a whole: pass, partial or fail (nothing completed)."""
    done = len(of(standing, *outcome.DONE))
    if done + len(of(standing, outcome.SKIPPED)) == len(standing) and done:
        return "pass"
    return "partial" if done else "fail"
