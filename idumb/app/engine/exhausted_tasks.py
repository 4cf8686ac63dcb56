"""The question about a task that failed with all its attempts. It stays failed while other tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.domain import outcome
from idumb.domain.decision import Choice, Decision
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.run import EXHAUSTED, RunState
from idumb.domain.runs.task_state import TaskState

MARK = ".exhausted."
RETRY, ACCEPT, SKIP, ROLL_BACK = "retry", "accept", "skip", "roll-back"
REMOVED = "removed"
"""What the record says where its dead letter was removed: the question no longer waits, and nothing else follows."""

_PLAN_DECIDES = frozenset({"block", "ask"})
_NOT_TRIED = frozenset({outcome.REFUSED, outcome.ERRORED})


def asks(task: Task, mode: str, known: TaskState) -> bool:
    """Return whether a failure leaves this question: not if strict mode, the plan or another question decides."""
    if mode == STRICT or task.is_human or known.work.deviations or known.attempt.outcome in _NOT_TRIED:
        return False
    if known.attempt.outcome == outcome.TIMED_OUT and task.on_timeout not in (None, "retry"):
        return False
    return task.on_failure not in _PLAN_DECIDES


def question(task: Task, known: TaskState, reason: str) -> Decision:
    id = f"{task.id}{MARK}{known.attempt.number}"
    made = known.progress.attempts or known.attempt.number  # an agent whose context was full uses up none
    count = f"{made} attempt{'s' * (made != 1)}"
    return Decision(
        id=id,
        kind=EXHAUSTED,
        task=task.id,
        what=f"{task.id} {task.title} failed after {count}",
        why="It is not tried again by itself. What depends on it is blocked; independent tasks go on.",
        evidence=tuple((known.context.feedback or reason).splitlines()[:20]),
        choices=(
            Choice(
                RETRY,
                "try it again, with guidance for its builder",
                "it gets its attempts again, and the words of --guidance are in their prompts; idumb resume runs them",
                f"idumb decide {id} {RETRY} --guidance TEXT",
            ),
            Choice(
                ACCEPT,
                "take its work as it is",
                "it counts as done by your word, what it left is committed, and what depends on it can run",
                f"idumb decide {id} {ACCEPT} --guidance REASON",
            ),
            Choice(
                SKIP,
                "leave it out",
                "what depends on it stays blocked",
                f"idumb decide {id} {SKIP} --guidance REASON",
            ),
            Choice(
                ROLL_BACK,
                "roll back to before it",
                "its files, and those of tasks begun after it, are as they were before it, in a new commit;"
                " idumb undo brings the work back",
                f"idumb decide {id} {ROLL_BACK}",
            ),
        ),
    )


def stands(state: RunState, asked: Mapping[str, Any]) -> bool:
    """Return whether the question is about the task's present failure."""
    known = state.tasks.get(str(asked.get("task")))
    return (
        known is not None
        and known.status == outcome.FAILED
        and asked["id"] == f"{known.id}{MARK}{known.attempt.number}"
    )


def standing(state: RunState, task: str) -> str | None:
    """Return the id of the open question about this task."""
    found = (i for i, asked in state.decisions.items() if asked.get("task") == task and asked["kind"] == EXHAUSTED)
    return next((i for i in found if i not in state.answers and stands(state, state.decisions[i])), None)
