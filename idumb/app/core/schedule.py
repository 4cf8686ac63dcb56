"""Picks the next task: the first in execution order whose dependencies are all done. Says what the others wait for."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from idumb.app.core import questions
from idumb.domain import agent, outcome
from idumb.domain.action import CONFLICT, HISTORY, PHASE, seconds_until
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
    """The displayed status of every task: a pending task is ready, or blocked by a failed or skipped one.

    One whose files are in conflict with the user's waits for his answer, although its attempt has not begun or ended.
    """
    statuses: dict[str, str] = {}
    asking = {question["task"] for question in open_questions(state)}
    for task in contract.order:
        status = state.tasks[task].status if task in state.tasks else outcome.PENDING
        if status in (outcome.PENDING, outcome.READY):
            status = _pending_status([statuses[d] for d in contract.dependencies[task]])
        is_next = status in (outcome.READY, outcome.RUNNING)  # others wait for tasks, whatever was asked earlier
        statuses[task] = outcome.WAITING if is_next and task in asking else status
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


# Open questions


def open_questions(state: RunState, now: str | None = None) -> list[dict[str, Any]]:
    """Return the open questions: of tasks that wait, failed for good or are to be accepted, and of the phase.

    With `now`, those are omitted whose time to answer is over: `resume` records that the answer is no.
    """
    waiting = {d for t in state.tasks.values() if t.status == outcome.WAITING for d in t.decisions}
    unanswered = {i: d for i, d in state.decisions.items() if i not in state.answers}
    rows = [dict(d) for i, d in unanswered.items() if i in waiting or _waits_by_itself(state, d)]
    return [row for row in rows if now is None or "until" not in row or seconds_until(row["until"], now)]


def _waits_by_itself(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether a question waits although no task does: about the phase, or about a task that failed for good."""
    if question["task"] is None:
        verification = state.verification or {}  # a later one may have replaced the one that the question is about
        return state.is_complete and (question["kind"] != PHASE or verification.get("decision") == question["id"])
    task = state.tasks.get(question["task"])
    if task is None:
        return False
    if question["kind"] == HISTORY:  # the run was halted by it
        return bool(state.reason == question["what"])
    if question["kind"] == CONFLICT:
        before = task.status in RUNNABLE and not task.attempt.running
        waits = before if question["subject"] == questions.BASE else task.intended
        return waits and not _has_successor(state, question)
    return questions.is_current(state, question)


def _has_successor(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether a later question is about the same files, and perhaps others."""
    key = (question["task"], question["subject"])
    same = (row for row in state.decisions.values() if (row["task"], row["subject"]) == key)
    return bool(questions.last_about(same, question["evidence"]) != question["id"])


# Tasks that wait for others


def dependents(contract: Contract, task: str) -> tuple[str, ...]:
    """Every task that depends on this one, directly or indirectly, in execution order."""
    needs = graph.dependents(contract.dependencies, [task])
    return tuple(t for t in contract.order if t in needs)


def root_causes(contract: Contract, statuses: Mapping[str, str], tasks: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The failed and skipped tasks that block each of these tasks, directly or indirectly, nearest first."""
    found: dict[str, dict[str, int]] = {}
    asked = [*tasks]
    waiting = asked[::-1]
    while waiting:
        task = waiting[-1]
        needs = contract.dependencies[task]
        first = [needed for needed in needs if statuses[needed] == outcome.BLOCKED and needed not in found]
        if first:
            waiting += first
            continue
        waiting.pop()
        steps: dict[str, int] = {}
        for needed in needs:
            above = {needed: 0} if statuses[needed] in (outcome.FAILED, outcome.SKIPPED) else found.get(needed, {})
            for cause, distance in above.items():
                steps[cause] = min(distance + 1, steps.get(cause, distance + 1))
        found[task] = dict(sorted(steps.items(), key=operator.itemgetter(1)))
    return {task: tuple(found[task]) for task in asked}


def blockers(contract: Contract, statuses: Mapping[str, str], task: str) -> tuple[str, ...]:
    """The direct dependencies that block a task."""
    return tuple(d for d in contract.dependencies[task] if statuses[d] not in outcome.UNBLOCKING)
