"""Carries out what follows for a task: asks, records, or continues the attempt that was saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from idumb.app.attempt import budget, entry, handoff_writer
from idumb.app.core import questions, run_lookup
from idumb.app.core.attempt import Attempt
from idumb.app.core.questions import Deviations
from idumb.app.core.run_context import RunContext
from idumb.app.engine import follow, unfinished_attempts
from idumb.app.engine.follow import Circumstances, Move
from idumb.app.worktree import delivery, exposed_secrets, preconditions, task_base
from idumb.domain import action, failures, outcome
from idumb.domain import contract as contracts
from idumb.domain.action import CONFLICT, Action, Decision, seconds_until
from idumb.domain.errors import WorkFailed
from idumb.domain.plans.plan import Task
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import TaskState


class Ending(Struct, frozen=True):
    """How the loop ended: `kind` is done, halted, paused, waiting, editor or commit-refused; `words` say why.

    `editor`: the task's builder drives idumb itself, and it is its turn. `fields` are added to the event: `by`
    and `why` of a pause, `task` and `failure` of an agent that could not work.
    """

    kind: str
    words: str = ""
    task: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


def next_move(context: RunContext, task: Task, dirty: tuple[str, ...] = ()) -> Move:
    """Return what follows for a task now; `dirty` are files of its that the user has changed."""
    state, task_state = context.state, context.state.tasks[task.id]
    return follow.follow(task, task_state, state, _circumstances(context, task, task_state, dirty))


def _from_clean_base(context: RunContext, task: Task) -> Move:
    """Return what follows for a task, which starts a new base only if the user's changes are not in its way."""
    move = next_move(context, task)
    if move.kind != action.START or entry.keeps_own_work(context, task) or entry.lacks_only_verdict(context, task):
        return move
    return next_move(context, task, task_base.changed_by_user(context, task))


_CONTINUING: Mapping[str, Callable[[RunContext, Task], Attempt | None]] = {
    action.FINISH: unfinished_attempts.finish_delivery,
    action.JUDGE: unfinished_attempts.continue_with_answers,
    follow.INTERRUPT: unfinished_attempts.record_kill,
    follow.EXPIRE: unfinished_attempts.record_expiry,
}
"""The moves that continue the attempt of the log. They return it if it went on to its end."""
REFUSED = "commit-refused"
READY = Ending("ready")
"""Another attempt may begin."""


def advance(context: RunContext, task: Task, *, takes: bool = False) -> Ending:
    """Lead a task until an attempt may begin (READY), the run goes on without it (`done`), or the run ends.

    With `takes`, it begins from what is there.
    """
    follows = next_move if takes else _from_clean_base
    while (move := follows(context, task)).kind != action.START:
        if move.kind == follow.DONE:
            return Ending("done")
        ending = carry_out(context, task, move)
        if ending is not None:
            return ending
    budget.note_if_blind(context, task)
    return READY


def recover(context: RunContext) -> None:
    """Finish or restore what a killed or interrupted run left. A kill during recovery is safe.

    An attempt that is open in an editor is left alone: its builder submits it or gives it up.
    """
    for task_id, task_state in list(context.state.tasks.items()):
        if task_state.status == outcome.RUNNING and task_state.attempt.opened is None:
            context.checks.end_processes()
            settle(context, context.contract.tasks[task_id])


def resolve_waiting(context: RunContext) -> None:
    """Ask what tasks wait for, at a terminal. Continue those whose questions are answered, end those that are late."""
    for task_id, task_state in list(context.state.tasks.items()):
        if task_state.status == outcome.WAITING:
            settle(context, context.contract.tasks[task_id], ask=True)


def settle(context: RunContext, task: Task, *, ask: bool = False) -> None:
    """Bring a task to a state from which a new attempt can start, or in which it waits or has ended.

    What decides whether an attempt may begin is left for the task's turn. WorkFailed if git refuses a commit.
    """
    context = context.continuing(task)
    while context.state.tasks[task.id].status in (outcome.RUNNING, outcome.WAITING):
        move = next_move(context, task)
        if move.kind in (action.START, follow.HALT):
            return
        ending = carry_out(context, task, move, ask=ask)
        if ending is not None and ending.kind == REFUSED:
            raise _commit_failed(context, task, ending.words)
        if ending is not None and ending.kind == "waiting":
            return


def carry_out(context: RunContext, task: Task, move: Move, *, ask: bool = True) -> Ending | None:
    """Carry out a move other than START. Return how the run ends, None if it goes on."""
    if move.kind in _CONTINUING:
        done = _CONTINUING[move.kind](context, task)
        return None if done is None else conclude(context, done)
    task_state, journal = context.state.tasks[task.id], context.journal
    number, attempts = task_state.attempt.number, task_state.progress.attempts
    match move.kind:
        case follow.ASK:
            return _ask(context, task, move)
        case action.RESET:
            # A raised ceiling does not undo a failed attempt.
            kept = {"attempts": attempts} if move.keeps_attempts else {}
            journal.append("task.reset", task.id, reason=move.reason, **kept)
        case action.SKIP:
            journal.write(*_skipped(context, task, number, move.reason))
        case action.FAIL:
            beside = () if move.question is None else (journal.question_event(move.question, task.id, number),)
            failed = journal.event("task.failed", task.id, number, reason=move.reason, attempts=attempts)
            journal.write(*beside, failed)
            return Ending("halted", move.says, task.id) if move.says else None
        case follow.HALT:
            return Ending("halted", move.says, task.id, {"task": task.id, "failure": task_state.attempt.failure or ""})
        case action.WAIT:
            return _wait(context, task, move, ask=ask)
    return None


def conclude(context: RunContext, attempt: Attempt) -> Ending | None:
    """Write a recorded attempt's handoffs, and ask about conflicts. Return how the run ends; None if it goes on."""
    handoff_writer.write_of_task(context, attempt.task)
    question = delivery.question(context.state, attempt, attempt.conflicts) if attempt.conflicts else None
    if question is not None and context.journal.answer(question.id) is None:
        return _conflict(context, attempt.task, question)
    if attempt.commit_refused is not None:
        waits = preconditions.why_not_deliver(context)
        if waits := waits or (attempt.commit_refused if question else ""):  # an answer does not clear the way
            return Ending("waiting", f"waits: {attempt.task.id} is done, but {waits}", attempt.task.id)
        if context.services.history.head().commit == attempt.judged_on:
            return Ending(REFUSED, attempt.commit_refused, attempt.task.id)
        return _on_moved_branch(context, attempt)
    if attempt.outcome == outcome.WAITING and not context.state.tasks[attempt.task.id].decisions:
        return Ending("waiting", attempt.reason, attempt.task.id)
    return None


def _conflict(context: RunContext, task: Task, question: Decision) -> Ending | None:
    """Ask whose version of files counts, at once. Without an answer, the next command looks again."""
    answer = context.journal.ask_once(context.services.asker, question)
    return Ending("waiting", question.what, task.id) if answer is None else None


def _commit_failed(context: RunContext, task: Task, words: str) -> WorkFailed:
    mine = contracts.in_editor(context.contract.plan_of[task.id], task, context.services.settings)
    again = Action.of("submit", task.id) if mine else Action.of("resume", context.contract.phase)
    message = f"git refused the commit of {task.id}: {words}"
    return WorkFailed("git.commit-refused", message, hint=f"Fix what git names, then {again}")


_MOST_JUDGED = 3
"""How often finished work is judged again before a person is asked, because the branch moves while it is committed."""


def _on_moved_branch(context: RunContext, attempt: Attempt) -> Ending | None:
    """Judge finished work again on top of the branch, which moved; None if that follows."""
    task, journal = attempt.task, context.journal
    intended = context.services.log.events(run=context.run, task=task.id, kind="checkpoint.intended")
    tries = sum(1 for event in intended if event.attempt == attempt.number)
    if tries <= _MOST_JUDGED:
        return None
    question = questions.about(questions.MOVED, task, tries, (str(attempt.commit_refused),), count=tries)
    ending = _conflict(context, task, question)
    stops = ending is None and questions.chosen(journal.state, question.id).move == action.WAIT
    return Ending("waiting", question.what, task.id) if stops else ending


def _ask(context: RunContext, task: Task, move: Move) -> Ending | None:
    """Record a question, and that the task waits for the answer. `_wait` asks it."""
    question = move.question
    if question is None:
        raise AssertionError("there is nothing to ask")
    if question.kind == CONFLICT:
        return _conflict(context, task, question)
    number, journal = context.state.tasks[task.id].attempt.number, context.journal
    waiting = journal.event("task.waiting", task.id, number, decisions=[question.id], reason=move.reason)
    journal.write(journal.question_event(question, task.id, number), waiting)
    return None


def _wait(context: RunContext, task: Task, move: Move, *, ask: bool) -> Ending | None:
    """Ask for the answers that a task waits for, at a terminal, and record each. None if all of them are there."""
    journal, waits = context.journal, Ending("waiting", move.says, task.id)
    task_state = journal.state.tasks[task.id]
    if not ask or task_state.status != outcome.WAITING:
        return waits
    for id in task_state.decisions:
        journal.ask_once(context.services.asker, Decision.recorded(journal.state.decisions[id]))
    left = [id for id in task_state.decisions if id not in journal.state.answers]
    return waits if left and next_move(context, task).kind == action.WAIT else None


def _skipped(context: RunContext, task: Task, number: int, reason: str) -> tuple[NewEvent, ...]:
    """Return the events of a task that is left out. In a workflow, one that timed out blocks nothing."""
    timed_out = context.state.tasks[task.id].attempt.outcome == outcome.TIMED_OUT
    if task.flow is None or not timed_out:
        return (context.journal.event("task.skipped", task.id, number, reason=reason),)
    from idumb.app.attempt import steps  # only workflows need it

    return tuple(steps.omitting(context, (task.id,), task.id, "timed out, and the workflow says skip"))


def _circumstances(context: RunContext, task: Task, task_state: TaskState, dirty: tuple[str, ...]) -> Circumstances:
    state, services, plan = context.state, context.services, context.contract.plan_of[task.id]
    deviations = run_lookup.deviations(services, context.run, task.id) if task_state.attempt.deviates else Deviations()
    waiting = (state.decisions[d] for d in task_state.decisions if d in state.decisions and d not in state.answers)
    until = (question.get("until") for question in waiting)
    return Circumstances(
        services.settings,
        context.request.max_attempts or services.settings.run.max_attempts,
        decided=context.request.on_deviation is not None,
        deviations=deviations,
        secret=exposed_secrets.in_any_name(services, deviations.undeclared),
        in_editor=contracts.in_editor(plan, task, services.settings),
        judges_only=entry.lacks_only_verdict(context, task),
        overdue=any(end is not None and not seconds_until(end, services.clock.now()) for end in until),
        just_ended=failures.kind(task_state.attempt.failure).stops and _just_ended(context, task),
        dirty=dirty,
    )


def _just_ended(context: RunContext, task: Task) -> bool:
    """Return whether this command recorded how the last attempt ended; it may have begun in an earlier one."""
    ended = run_lookup.last_event(context.services, "attempt.finished", context.run, task.id)
    return ended is not None and ended.operation == context.journal.operation
