"""What to do next, as commands: for failed and blocked tasks, and for a run as a whole by iDumb's chain rules."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome


def verify(phase: str) -> str:
    return f"idumb verify-work {phase}"


def retry(phase: str) -> str:
    return f"idumb resume {phase} --retry-failed"


def debug(task_id: str) -> str:
    return f"idumb debug {task_id}"


def accept(task_id: str) -> str:
    return f'idumb accept {task_id} --why "..."'


def remediation(phase: str, task_id: str, ended: str | None) -> str:
    """What mends a failed task, by how its last attempt ended; one plain sentence with its command in it."""
    again = f"then `{retry(phase)}`"
    if ended == outcome.TIMED_OUT:
        return f"Find what takes so long (`{debug(task_id)}`) or declare a longer Timeout in the plan, {again}."
    if ended == outcome.ERRORED:
        return f"Make the builder or the check able to run (`{debug(task_id)}` shows what it said), {again}."
    if ended == outcome.REFUSED:
        return f"The builder declined; read why (`{debug(task_id)}`), change the task or the builder, {again}."
    return f"See what the checks said (`{debug(task_id)}`), mend the cause, {again}."


def unblock(phase: str, causes: Sequence[str], *, skipped: bool = False) -> str:
    """The ways out for a blocked task: mend, accept, or take the dependency away."""
    if not causes:
        return f"`{retry(phase)}`"
    root = causes[0]
    first = f"`{retry(phase)}` tries {root} again" if skipped else f"Mend {root}, then `{retry(phase)}`"
    return f"{first}; or `{accept(root)}`; or take the dependency out of the plan"
