"""How a task ends that has no attempts left: skipped, put to a person, or failed."""

from __future__ import annotations

from idumb.app.attempt import questions
from idumb.app.core import schedule
from idumb.app.core.run_context import Bench
from idumb.app.engine import exhausted_tasks
from idumb.domain import outcome
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.task_state import TaskState


def tries_again(bench: Bench, task: Task) -> bool:
    """Return whether another attempt follows the one that failed last."""
    known = bench.journal.state.tasks[task.id]
    return schedule.tries_again(task, bench.plans[task.id].mode, known, bench.max_attempts)


def is_left_out(task: Task, ended: str | None) -> bool:
    """Return whether the plan skips a task that timed out."""
    return ended == outcome.TIMED_OUT and task.on_timeout == "skip"


def asks(task: Task, *, deviated: bool) -> bool:
    """Return whether the plan asks a person about a failed task."""
    return task.on_failure == "ask" and not deviated


def left_out(bench: Bench, task: Task, attempt: int) -> NewEvent:
    return bench.journal.event("task.skipped", task.id, attempt, reason="timed out, and the plan says skip")


def failed(bench: Bench, task: Task, attempt: int, reason: str) -> NewEvent:
    attempts = bench.journal.state.tasks[task.id].progress.attempts
    return bench.journal.event("task.failed", task.id, attempt, reason=reason, attempts=attempts)


def for_good(bench: Bench, task: Task, attempt: int, reason: str) -> tuple[NewEvent, ...]:
    """Return the events of a task that stays failed, with a question if neither plan nor strict mode decides."""
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
    """Return the same events for a failure that was recorded before idumb was killed. The question waits."""
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
