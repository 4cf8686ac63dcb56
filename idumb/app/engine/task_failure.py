"""How a task ends that has no attempts left: skipped, put to a person, or failed."""

from __future__ import annotations

from idumb.app.attempt import questions
from idumb.app.core import schedule
from idumb.app.core.run_context import RunContext
from idumb.app.engine import exhausted_tasks
from idumb.domain import outcome
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.task_state import TaskState


def tries_again(context: RunContext, task: Task) -> bool:
    """Return whether another attempt follows the one that failed last."""
    task_state = context.journal.state.tasks[task.id]
    return schedule.tries_again(task, context.plans[task.id].mode, task_state, context.max_attempts)


def is_left_out(task: Task, ended: str | None) -> bool:
    """Return whether the plan skips a task that timed out."""
    return ended == outcome.TIMED_OUT and task.on_timeout == "skip"


def question(task: Task, attempt: int, ended: str | None, reason: str, *, deviated: bool) -> Decision | None:
    """Return the question about a failed task that waits for its answer; None if nobody is asked before it fails.

    That is if the plan says so, and if a precondition does not hold, unless the plan says that it blocks.
    """
    if questions.is_unmet_precondition(ended, reason) and task.on_failure != "block":
        return questions.precondition_question(task, attempt, reason)
    return questions.failure_question(task, attempt, reason) if task.on_failure == "ask" and not deviated else None


def left_out(context: RunContext, task: Task, attempt: int) -> tuple[NewEvent, ...]:
    """Return the events of a task that timed out and is skipped. In a workflow, it is omitted and blocks nothing."""
    if task.flow is None:
        return (context.journal.event("task.skipped", task.id, attempt, reason="timed out, and the plan says skip"),)
    from idumb.app.attempt import step_outputs  # only workflows need it

    return tuple(step_outputs.omitting(context, (task.id,), task.id, "timed out, and the workflow says skip"))


def failed(context: RunContext, task: Task, attempt: int, reason: str) -> NewEvent:
    attempts = context.journal.state.tasks[task.id].progress.attempts
    return context.journal.event("task.failed", task.id, attempt, reason=reason, attempts=attempts)


def for_good(context: RunContext, task: Task, attempt: int, reason: str) -> tuple[NewEvent, ...]:
    """Return the events of a task that stays failed, with a question if neither plan nor strict mode decides."""
    task_state = context.journal.state.tasks[task.id]
    ended = failed(context, task, attempt, reason)
    if not exhausted_tasks.asks(task, _mode(context, task), task_state):
        return (ended,)
    return (context.journal.question_event(exhausted_tasks.question(task, task_state, reason), task.id, attempt), ended)


def _mode(context: RunContext, task: Task) -> str:
    return STRICT if context.journal.state.mode == STRICT else context.plans[task.id].mode


def waiting(context: RunContext, task: Task, attempt: int, question: Decision, reason: str) -> NewEvent:
    return context.journal.event("task.waiting", task.id, attempt, decisions=[question.id], reason=reason)


def of_recorded(context: RunContext, task: Task, task_state: TaskState) -> tuple[NewEvent, ...]:
    """Return the same events for a failure that was recorded before idumb was killed. The question waits."""
    if is_left_out(task, task_state.attempt.outcome):
        return left_out(context, task, task_state.attempt.number)
    number, reason = task_state.attempt.number, task_state.reason
    asked = question(task, number, task_state.attempt.outcome, reason, deviated=bool(task_state.work.deviations))
    if asked is not None:
        return (
            context.journal.question_event(asked, task.id, number),
            waiting(context, task, number, asked, reason),
        )
    waits = questions.ask_about_recorded_strays(context, task, task_state) if task_state.work.deviations else ()
    return waits or for_good(context, task, number, reason)
