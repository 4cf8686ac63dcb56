"""The next commands for failed and blocked tasks."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome


def verify(phase: str) -> str:
    return f"idumb verify-work {phase}"


def resume(phase: str) -> str:
    return f"idumb resume {phase}"


def retry(phase: str) -> str:
    return f"idumb resume {phase} --retry-failed"


def show(task_id: str) -> str:
    return f"idumb show {task_id}"


def debug(phase: str, task_id: str) -> str:
    return f"idumb debug {phase} --task {task_id}"


def accept(task_id: str) -> str:
    return f"idumb accept {task_id} --why REASON"


def remediation(phase: str, task_id: str, ended: str | None) -> str:
    """Return how to fix a failed task, by the outcome of its last attempt, as one sentence with commands."""
    again = f"then `{retry(phase)}`"
    if ended == outcome.TIMED_OUT:
        return f"Find out what takes so long (`{show(task_id)}`), or declare a longer Timeout in the plan, {again}."
    if ended == outcome.ERRORED:
        return f"Fix the builder or the check so that it can run (`{show(task_id)}` shows its output), {again}."
    if ended == outcome.REFUSED:
        return f"Provide what the attempt needs before it can start (`{show(task_id)}` names it), {again}."
    return f"Read the output of the checks (`{show(task_id)}`), fix the cause, {again}."


def unblock(phase: str, causes: Sequence[str], *, skipped: bool = False) -> str:
    """Return how to unblock a task: fix or accept the cause, or remove the dependency."""
    if not causes:
        return f"`{resume(phase)}`"
    root = causes[0]
    mend = "" if skipped else f"Fix {root}, then `{retry(phase)}`; or "
    return f"{mend}`{accept(root)}`; or remove the dependency from the plan"
