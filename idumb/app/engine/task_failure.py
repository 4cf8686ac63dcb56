"""How a task ends whose attempts are used up: left out, put to a person, or failed."""

from __future__ import annotations

from idumb.app.attempt import questions
from idumb.app.core.run_context import Bench
from idumb.app.engine import exhausted_tasks
from idumb.domain import outcome
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.task_state import TaskState


def is_left_out(task: Task, ended: str | None) -> bool:
    """The plan says that a task which ran out of time is skipped."""
    return ended == outcome.TIMED_OUT and task.on_timeout == "skip"


def asks(task: Task, *, deviated: bool) -> bool:
    return task.on_failure == "ask" and not deviated


def left_out(bench: Bench, task: Task, attempt: int) -> NewEvent:
    return bench.journal.event("task.skipped", task.id, attempt, reason="timed out, and the plan says skip")


def failed(bench: Bench, task: Task, attempt: int, reason: str) -> NewEvent:
    attempts = bench.journal.state.tasks[task.id].progress.attempts
    return bench.journal.event("task.failed", task.id, attempt, reason=reason, attempts=attempts)


def for_good(bench: Bench, task: Task, attempt: int, reason: str) -> tuple[NewEvent, ...]:
    """It failed and stays so, and asks what is to follow where neither the plan nor strict mode says that."""
    known = bench.journal.state.tasks[task.id]
    ended = failed(bench, task, attempt, reason)
    if not exhausted_tasks.asks(task, _mode(bench, task), known):
        return (ended,)
    return (asked(bench, task, attempt, exhausted_tasks.question(task, known, reason)), ended)


def _mode(bench: Bench, task: Task) -> str:
    return STRICT if bench.journal.state.mode == STRICT else bench.plans[task.id].mode


def asked(bench: Bench, task: Task, attempt: int, question: Decision) -> NewEvent:
    return bench.journal.asked(question, task.id, attempt)


def waiting(bench: Bench, task: Task, attempt: int, question: Decision, reason: str) -> NewEvent:
    return bench.journal.event("task.waiting", task.id, attempt, decisions=[question.id], reason=reason)


def of_recorded(bench: Bench, task: Task, known: TaskState) -> tuple[NewEvent, ...]:
    """The same for a failure that was recorded before idumb was ended; the question waits, for nobody is asked now."""
    if is_left_out(task, known.attempt.outcome):
        return (left_out(bench, task, known.attempt.number),)
    if asks(task, deviated=bool(known.work.deviations)):
        question = questions.failure_question(task, known.attempt.number, known.reason)
        return (
            asked(bench, task, known.attempt.number, question),
            waiting(bench, task, known.attempt.number, question, known.reason),
        )
    waits = questions.ask_about_recorded_strays(bench, task, known) if known.work.deviations else ()
    return waits or for_good(bench, task, known.attempt.number, known.reason)
