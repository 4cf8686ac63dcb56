"""What follows for a task, from its state, the answers of people, and the circumstances.

Only this module makes a `Move`. The function is pure. The same one serves the loop, the editor, and a command that
continues after a kill or an answer: it looks at what the log has, so it does not matter how the task came there.
"""

from __future__ import annotations

from msgspec import Struct

from idumb.app.attempt import budget
from idumb.app.core import questions, schedule
from idumb.app.core.questions import Deviations
from idumb.domain import agent, failures, outcome, wording
from idumb.domain.action import EFFECT as UNKNOWN_EFFECT
from idumb.domain.action import FAIL, FINISH, JUDGE, LIMIT, REFUSE, RESET, SKIP, START, WAIT, WORK, Decision
from idumb.domain.plans.plan import COMPENSATABLE, STRICT, Task
from idumb.domain.runs.run import ANSWERED, EFFECT, ELSEWHERE, RunState, TaskState
from idumb.domain.settings import Settings

INTERRUPT, ASK, EXPIRE, HALT, DONE = "interrupt", "ask", "expire", "halt", "done"
"""The moves that no choice of a person has, besides those of `domain/action.py`."""


class Move(Struct, frozen=True):
    """What happens next with a task.

    - START: a new attempt. FINISH: deliver and commit what was announced. JUDGE: continue the attempt that was saved,
      with the answers. INTERRUPT: record an attempt that was killed.
    - ASK: put `question` to a person: the task waits for the answer. WAIT: ask at a terminal, or wait for the answer.
      EXPIRE: its time is over.
    - RESET: try it again, because of `reason`; `keeps_attempts` is for the event.
    - SKIP, FAIL: it ends. `question` of FAIL is put beside it. HALT: the run stops. DONE: nothing.

    `reason` is recorded. With `says`, the run stops with these words: after FAIL and HALT it has halted, after WAIT
    without an answer it waits.
    """

    kind: str
    reason: str = ""
    says: str = ""
    question: Decision | None = None
    keeps_attempts: bool = False


class Circumstances(Struct, frozen=True):
    """What decides besides the state of the task.

    - `decided`: whether an option says what happens with undeclared changes, so that nobody is asked.
    - `deviations`: those of a failed attempt. `secret`: the name of one holds a secret.
    - `in_editor`: its builder drives idumb itself. `judges_only`: the work is done, and only its verdict is pending.
    - `overdue`: the time to answer is over.
    - `just_ended`: this command ended the last attempt. `dirty`: files that the task declares and the user has changed.
    """

    settings: Settings
    max_attempts: int
    decided: bool = False
    deviations: Deviations = Deviations()
    secret: bool = False
    in_editor: bool = False
    judges_only: bool = False
    overdue: bool = False
    just_ended: bool = False
    dirty: tuple[str, ...] = ()


def follow(task: Task, state: TaskState, run: RunState, now: Circumstances) -> Move:
    """Return what follows for a task. `run` has the questions, the answers and what was spent."""
    if state.status == outcome.WAITING:
        return _of_waiting(task, state, run, now)
    if state.status not in schedule.RUNNABLE:
        return Move(DONE)
    if state.intended:
        return Move(FINISH)
    if state.attempt.opened is not None:
        return Move(WAIT, says=f"{task.id} is open in an editor")
    if state.attempt.running:
        return Move(INTERRUPT)
    if state.status == outcome.RUNNING and state.attempt.outcome is not None:
        return _after_attempt(task, state, run, now)
    if failures.kind(state.attempt.failure).stops and now.just_ended:
        return Move(HALT, says=f"{task.id}: {state.reason}. {state.attempt.next_step}")
    return _before_attempt(task, state, run, now)


def _before_attempt(task: Task, state: TaskState, run: RunState, now: Circumstances) -> Move:
    """Return what a person must decide before another attempt begins; otherwise it starts."""
    if state.effect == EFFECT and not now.judges_only:
        question = _effect(task, state.attempt.number, state.reason)
        if question.id not in run.answers:
            says = f"{task.id} may already have had its effect, and waits for your answer before it is retried"
            return Move(ASK, says, question=question)
    ceiling = budget.reached(now.settings, run, task.id)
    if ceiling is None:
        return _about_base(task, run, now) if now.dirty else Move(START)
    words = f"the ceiling of the {ceiling.scope} is reached: {ceiling.words}"
    if budget.is_stopped(run, task.id, ceiling):
        return Move(FAIL, words, f"{task.id}: {words}")
    return Move(ASK, f"{task.id}: {words}", question=budget.question(task, ceiling, run))


def _effect(task: Task, attempt: int, reason: str) -> Decision:
    """Return the question whether an irreversible task that was cut short had its effect."""
    compensatable = task.rollback.kind == COMPENSATABLE
    lines = (
        reason,
        task.rollback.reason,
        *(f"undone by: {command}" for command in task.rollback.commands),
        f"idumb accept {task.id} --why REASON marks it as done",
    )
    how = "can be undone only by the commands of the plan" if compensatable else "cannot be undone"
    return questions.about(UNKNOWN_EFFECT, task, attempt, filter(None, lines), how=how)


def _about_base(task: Task, run: RunState, now: Circumstances) -> Move:
    """Return what follows uncommitted changes of the user in files that the task declares."""
    question = questions.about(questions.BASE, task, 1, now.dirty, paths=wording.listed(now.dirty))
    question = questions.asked_before(run, question)
    if question.id not in run.answers:
        return Move(ASK, question=question)
    move = questions.chosen(run, question.id).move
    if move == WAIT:
        return Move(WAIT, says=f"{task.id} waits for your commit of {wording.listed(now.dirty)}")
    return Move(START) if move == START else Move(FAIL, question.what, question.what)


def _after_attempt(task: Task, state: TaskState, run: RunState, now: Circumstances) -> Move:
    """Return what follows an attempt that failed."""
    attempt, strict = state.attempt, run.mode == STRICT
    if attempt.failure is not None and not attempt.deviates:
        fresh = attempt.failure == agent.CONTEXT_EXHAUSTED and state.progress.exhausted <= schedule.MOST_CONTEXTS
        over = attempt.failure == agent.OVER_BUDGET and budget.reached(now.settings, run, task.id) is not None
        if fresh or over:
            return _before_attempt(task, state, run, now)
    refused = attempt.adapter == agent.HUMAN and _refused(run, task.id)
    if not refused and schedule.tries_again(task, run.mode, state, now.max_attempts):
        return _before_attempt(task, state, run, now)
    if attempt.outcome == outcome.TIMED_OUT and task.on_timeout == "skip":
        return Move(SKIP, "timed out, and the plan says skip")
    question = _question_of_failure(task, state)
    if question is not None:
        return Move(ASK, state.reason, question=question)
    if attempt.deviates:
        return _about_deviations(task, state, run, now, strict=strict)
    repeats = schedule.repeats_itself(state)
    beside = questions.exhausted(task, state, repeats=repeats) if _asks_at_end(task, state, strict) else None
    return Move(FAIL, state.reason, _halts(task, state, run, now), beside)


def _refused(run: RunState, task: str) -> bool:
    """Return whether a person last answered that he does not do the task, or that it is not as it should be."""
    last = [q["id"] for q in questions.answered(run, WORK, None, task)][-1:]
    return any(questions.chosen(run, question).move == REFUSE for question in last)


def _question_of_failure(task: Task, state: TaskState) -> Decision | None:
    """Return the question about a failed task before it fails for good; None if nobody is asked.

    A person is asked if the plan says so, or if a precondition does not hold, unless the plan says that it blocks.
    """
    number, reason = state.attempt.number, state.reason
    unmet = state.attempt.outcome == outcome.REFUSED and reason.startswith(f"{questions.PRECONDITION} ")
    if unmet and task.on_failure != "block":
        return questions.about(questions.PRECONDITION, task, number, reason.splitlines()[:20])
    asks = task.on_failure == "ask" and not state.attempt.deviates
    return questions.about(questions.FAILURE, task, number, reason.splitlines()[:20]) if asks else None


def _about_deviations(task: Task, state: TaskState, run: RunState, now: Circumstances, *, strict: bool) -> Move:
    """Return what follows undeclared changes. A person may keep them or leave them out, unless one names a secret."""
    decided = now.decided or now.secret or (strict and not now.in_editor)
    if decided or not now.deviations.can_be_decided:
        return Move(FAIL, state.reason, f"{task.id} {state.reason}")
    number = state.attempt.number
    question = questions.about_deviations(task, number, now.deviations, in_editor=now.in_editor)
    return Move(ASK, state.reason, question=questions.asked_before(run, question))


def _asks_at_end(task: Task, state: TaskState, strict: bool) -> bool:  # noqa: FBT001 - a fact about the run
    """Return whether a task that failed for good leaves a question: not if strict mode or the plan decides."""
    if strict or task.is_human or state.attempt.outcome in (outcome.REFUSED, outcome.ERRORED):
        return False
    if state.attempt.outcome == outcome.TIMED_OUT and task.on_timeout not in (None, "retry"):
        return False
    return task.on_failure not in ("block", "ask")


def _halts(task: Task, state: TaskState, run: RunState, now: Circumstances) -> str:
    """Return why the run halts if the task fails; "" if it goes on."""
    if run.mode == STRICT:
        return f"{task.id} failed: {state.reason}"
    count = run.failures_in_a_row + 1
    if count < now.settings.run.halt_after:
        return ""
    return f"{count} tasks failed in a row; the last was {task.id}: {state.reason}"


def _of_waiting(task: Task, state: TaskState, run: RunState, now: Circumstances) -> Move:
    if not state.decisions:  # it waits for an answer from elsewhere, and looks for it again
        return Move(RESET, ELSEWHERE)
    if any(decision not in run.answers for decision in state.decisions):
        says = state.reason if task.id in state.reason else f"{task.id}: {state.reason}"
        return Move(EXPIRE if now.overdue else WAIT, says=says)
    first = state.decisions[0]
    move = questions.chosen(run, first).move
    if move in (JUDGE, REFUSE):
        return Move(JUDGE)
    if move == SKIP:
        return Move(SKIP, f"answered {SKIP}")
    if move == RESET:
        return Move(RESET, ANSWERED, keeps_attempts=run.decisions[first]["kind"] == LIMIT)
    return Move(FAIL, state.reason, _halts(task, state, run, now))
