"""Picks the next task: the first in execution order whose dependencies are all done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from idumb.domain import agent, outcome
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.run import RunState, TaskState

RUNNABLE = frozenset({outcome.PENDING, outcome.READY, outcome.RUNNING})

MOST_CONTEXTS = 3
"""How often a fresh agent continues a task after the context of the last one was full; then the task fails."""

_FINAL = frozenset({outcome.REFUSED, outcome.ERRORED})


def ready(contract: Contract, state: RunState) -> Iterator[str]:
    """Yield each task when it can start. Update `state` with its result before you ask for the next one.

    A task comes after all that it depends on, so one pass is enough.
    """
    for task in contract.order:
        done = (state.tasks[needed].status in outcome.UNBLOCKING for needed in contract.dependencies[task])
        if state.tasks[task].status in RUNNABLE and all(done):
            yield task


def statuses(contract: Contract, state: RunState) -> dict[str, str]:
    """The displayed status of every task: a pending task is ready, or blocked by a failed or skipped one."""
    statuses: dict[str, str] = {}
    for task in contract.order:
        status = state.tasks[task].status if task in state.tasks else outcome.PENDING
        if status in (outcome.PENDING, outcome.READY):
            status = _pending_status([statuses[d] for d in contract.dependencies[task]])
        statuses[task] = status
    return statuses


def _pending_status(dependencies: list[str]) -> str:
    if any(s in (outcome.FAILED, outcome.BLOCKED, outcome.SKIPPED) for s in dependencies):
        return outcome.BLOCKED
    if all(s in outcome.UNBLOCKING for s in dependencies):
        return outcome.READY
    return outcome.PENDING


def is_settled(statuses: Mapping[str, str]) -> bool:
    """Whether every task is completed, accepted, skipped or omitted."""
    return not unfinished(statuses)


def unfinished(statuses: Mapping[str, str]) -> dict[str, str]:
    """The tasks that need more work, with their statuses."""
    return {t: s for t, s in statuses.items() if s not in outcome.ENDED}


def tries_again(task: Task, mode: str, task_state: TaskState, max_attempts: int) -> bool:
    """Whether another attempt follows a failed one. Strict mode never retries, nor does a task that could not start.

    An agent that failed twice with the same message and the same files is not called again, and a step that would
    fail in the same way is not run again. A person is asked again, as often as checks fail.
    """
    attempt = task_state.attempt
    unlike = task_state.work.deviations or attempt.deviates or attempt.unlike
    if mode == STRICT or unlike or attempt.outcome in _FINAL:
        return False
    by_person = attempt.adapter == agent.HUMAN
    if attempt.outcome == outcome.TIMED_OUT and task.on_timeout not in ("retry", *([] if by_person else [None])):
        return False
    if task_state.progress.exhausted > MOST_CONTEXTS or (task_state.once and task_state.progress.attempts):
        return False
    if repeats_itself(task_state):
        return False
    if agent.capabilities_of(attempt.adapter).deterministic and _would_fail_again(task, attempt.failed_step):
        return False
    limit = None if by_person and attempt.outcome == outcome.FAILED else max_attempts
    if task.flow is not None and task.flow.retries is not None:
        limit = task.flow.retries + 1
    return task.on_failure not in ("block", "ask") and (limit is None or task_state.progress.attempts < limit)


def repeats_itself(task_state: TaskState) -> bool:
    """Whether an agent's last two attempts failed with the same message and the same files."""
    adapter = task_state.attempt.adapter
    return bool(task_state.progress.repeated and adapter and agent.capabilities_of(adapter).calls_model)


def _would_fail_again(task: Task, failed_step: int | None) -> bool:
    """Whether the failed step depends on files alone: on the same tree, only `run` can have another result."""
    if failed_step is None or failed_step >= len(task.steps) or task.steps[failed_step].continue_on_error:
        return False
    return all(step.tool != "run" for step in task.steps[: failed_step + 1])


def dependents(contract: Contract, task: str) -> tuple[str, ...]:
    """Every task that depends on this one, directly or indirectly, in execution order."""
    needs = graph.dependents(contract.dependencies, [task])
    return tuple(t for t in contract.order if t in needs)


def root_causes(contract: Contract, statuses: Mapping[str, str], task: str) -> tuple[str, ...]:
    """The failed and skipped tasks that block a task, directly or indirectly, nearest first."""
    causes: dict[str, None] = {}
    seen, waiting = {task}, [task]
    while waiting:
        for dependency in contract.dependencies[waiting.pop(0)]:
            if statuses[dependency] in (outcome.FAILED, outcome.SKIPPED):
                causes[dependency] = None
            elif statuses[dependency] == outcome.BLOCKED and dependency not in seen:
                seen.add(dependency)
                waiting.append(dependency)
    return tuple(causes)


def blockers(contract: Contract, statuses: Mapping[str, str], task: str) -> tuple[str, ...]:
    """The direct dependencies that block a task."""
    return tuple(d for d in contract.dependencies[task] if statuses[d] not in outcome.UNBLOCKING)
