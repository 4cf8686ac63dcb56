"""Blocked tasks: which failed or skipped tasks block them, and the commands that unblock them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import schedule
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import RunState

REASON = "REASON"
_DONE_TO = {outcome.FAILED: "failed", outcome.SKIPPED: "was skipped"}


def why(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> str:
    """`waits for T1-01 (skipped: no time)`, with the tasks in between."""
    words = []
    for needed in schedule.blockers(contract, shown, task):
        task_state = state.tasks.get(needed) if state is not None else None
        reason = task_state.reason if task_state is not None and shown[needed] in _DONE_TO else ""
        words.append(f"{needed} ({shown[needed]}{f': {reason}' if reason else ''})")
    return f"waits for {wording.listed(words)}"


def actions(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> list[str]:
    """Commands that unblock a task and can succeed now; [] if the task is not blocked."""
    if shown[task] != outcome.BLOCKED:
        return []
    causes = schedule.roots(contract, shown, task)
    retries = any(shown[cause] == outcome.FAILED for cause in causes)
    retry = [f"idumb resume {contract.phase} --retry-failed"] if retries else []
    accept = [f"idumb accept {cause} --why {REASON}" for cause in causes]
    return [*retry, *accept, *_drop_dependency(contract, state, shown, task)]


def _drop_dependency(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> list[str]:
    """The amendment that drops the dependency.

    A strict plan is approved as a whole, so only its author changes it. Plans of workflows are never amended.
    """
    plan = contract.plan_of(task)
    if state is None or STRICT in (state.mode, contract.mode) or plan.dialect == step_plan.DIALECT or plan.workflow:
        return []
    droppable = [d for d in schedule.blockers(contract, shown, task) if d in contract.tasks[task].depends_on]
    if not droppable:
        return []
    return [" ".join([f"idumb amend {contract.phase}", *(f"--drop-dependency {task} {d}" for d in droppable)])]


def groups(contract: Contract, state: RunState | None, shown: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each failed or skipped task that blocks others: `by`, `status`, `reason`, `tasks`, `actions`."""
    held: dict[str, list[str]] = {}
    for task in contract.order:
        if shown[task] == outcome.BLOCKED:
            for cause in schedule.roots(contract, shown, task):
                held.setdefault(cause, []).append(task)
    return [_group(contract, state, shown, cause, tasks) for cause, tasks in held.items()]


def _group(
    contract: Contract, state: RunState | None, shown: Mapping[str, str], cause: str, tasks: list[str]
) -> dict[str, Any]:
    task_state = state.tasks.get(cause) if state is not None else None
    ways = [way for task in tasks for way in actions(contract, state, shown, task) if _is_about(way, cause)]
    return {
        "by": cause,
        "status": shown[cause],
        "reason": task_state.reason if task_state is not None else "",
        "tasks": tasks,
        "actions": list(dict.fromkeys(ways)),
    }


def _is_about(action: str, cause: str) -> bool:
    return cause in action.split() or action.endswith("--retry-failed")


def summary(groups: list[dict[str, Any]]) -> str:
    """One line that says why nothing more can run."""
    return "; ".join(
        f"{wording.listed(group['tasks'])} {'stays' if len(group['tasks']) == 1 else 'stay'} blocked,"
        f" because {group['by']} {_DONE_TO[group['status']]}{f': {reason}' if (reason := group['reason']) else ''}"
        for group in groups
    )


def is_stuck(shown: Mapping[str, str]) -> bool:
    """Whether every unfinished task is blocked, so that nothing can run until the user decides about skipped tasks."""
    held = {outcome.BLOCKED, *outcome.ENDED}
    return outcome.BLOCKED in shown.values() and set(shown.values()) <= held
