"""The question about a task that failed with all its attempts. It stays failed while other tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import schedule
from idumb.domain import outcome
from idumb.domain.decision import Choice, Decision
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import EXHAUSTED, RunState
from idumb.domain.runs.task_state import TaskState

MARK = ".exhausted."
RETRY, ACCEPT, SKIP, ROLL_BACK = "retry", "accept", "skip", "roll-back"
REMOVED = "removed"
"""The recorded answer when a dead letter is removed: the question no longer waits, and nothing else changes."""


def question(task: Task, task_state: TaskState, reason: str) -> Decision:
    id = f"{task.id}{MARK}{task_state.attempt.number}"
    number = task_state.progress.attempts or task_state.attempt.number  # an exhausted context uses up none
    count = f"{number} attempt{'s' * (number != 1)}"
    repeated = "It failed twice in the same way, so idumb" if schedule.repeats_itself(task_state) else "idumb"
    return Decision(
        id=id,
        kind=EXHAUSTED,
        task=task.id,
        what=f"{task.id} {task.title} failed after {count}",
        why=f"{repeated} does not retry it by itself. Tasks that depend on it are blocked; independent tasks continue.",
        evidence=tuple((task_state.context.feedback or reason).splitlines()[:20]),
        choices=(
            Choice(
                RETRY,
                "retry it, with guidance for its builder",
                "it gets new attempts, with the text of --guidance in their prompts; idumb resume runs them",
                f"idumb decide {id} {RETRY} --guidance TEXT",
            ),
            Choice(
                ACCEPT,
                "accept its work as it is",
                "it counts as done because you accept it, its work is committed, and tasks that depend on it can run",
                f"idumb decide {id} {ACCEPT} --guidance REASON",
            ),
            Choice(
                SKIP,
                "skip it",
                "tasks that depend on it stay blocked",
                f"idumb decide {id} {SKIP} --guidance REASON",
            ),
            Choice(
                ROLL_BACK,
                "roll back to before it",
                "a new commit restores its files, and those of later tasks; idumb undo restores the work",
                f"idumb decide {id} {ROLL_BACK}",
            ),
        ),
    )


def is_current(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether the question is about the task's present failure."""
    task_state = state.tasks.get(str(question.get("task")))
    return (
        task_state is not None
        and task_state.status == outcome.FAILED
        and question["id"] == f"{task_state.id}{MARK}{task_state.attempt.number}"
    )


def open_question(state: RunState, task: str) -> str | None:
    """Return the id of the open question about this task."""
    ids = (i for i, row in state.decisions.items() if row.get("task") == task and row["kind"] == EXHAUSTED)
    return next((i for i in ids if i not in state.answers and is_current(state, state.decisions[i])), None)
