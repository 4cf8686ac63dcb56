"""What follows for a task, from its record, the answers of people, and the limits. Only this module makes a `Move`.

The function is pure. The same one serves the loop, the editor, and a command that continues after a kill or an answer:
it looks at what the log has, so it does not matter how the task came there.
"""

from __future__ import annotations

from idumb.app.attempt import budget, questions
from idumb.app.core import schedule
from idumb.app.engine import exhausted_tasks
from idumb.domain import agent, failures, outcome, wording
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import STRICT, Plan, Task
from idumb.domain.proof import evidence
from idumb.domain.runs.run import ANSWERED, DEVIATION, ELSEWHERE, MINE, RunState
from idumb.domain.runs.task_state import EFFECT, TaskState
from idumb.domain.settings import KEEP, LEAVE_OUT, Settings
from idumb.lazy_dataclass import dataclass

START, FINISH, JUDGE, INTERRUPT = "start", "finish", "judge", "interrupt"
ASK, WAIT, EXPIRE, RESET, SKIP, FAIL, HALT, DONE = "ask", "wait", "expire", "reset", "skip", "fail", "halt", "done"


@dataclass(frozen=True, slots=True)
class Move:
    """What happens next with a task.

    - START: a new attempt. FINISH: deliver and commit what was announced. JUDGE: continue the attempt that was saved,
      with the answers. INTERRUPT: record an attempt that was killed.
    - ASK: put `question` to a person. WAIT: for an answer. EXPIRE: its time is over.
    - RESET: try it again, because of `reason`; `keeps_attempts` is for the event.
    - SKIP, FAIL: it ends. `question` of FAIL is put beside it. HALT: the run stops. DONE: nothing.

    `reason` is recorded. With `says`, the run stops with these words: after FAIL and HALT it has halted, after ASK
    without an answer it waits.
    """

    kind: str
    reason: str = ""
    says: str = ""
    question: Decision | None = None
    keeps_attempts: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides beside the record of the task.

    - `decided`: whether an option says what happens with undeclared changes, so that nobody is asked.
    - `strays`: undeclared changes of a failed attempt that a person may keep. `protected`: those that nobody can.
    - `secret`: the name of one holds a secret. `in_editor`: its builder drives idumb itself.
    - `judges_only`: the work is done, and only its verdict is pending. `overdue`: the time to answer is over.
    - `just_ended`: this command ended the last attempt. `dirty`: files that the task declares and the user has changed.
    """

    settings: Settings
    max_attempts: int
    decided: bool = False
    strays: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    secret: bool = False
    in_editor: bool = False
    judges_only: bool = False
    overdue: bool = False
    just_ended: bool = False
    dirty: tuple[str, ...] = ()


def follow(task: Task, plan: Plan, record: TaskState, run: RunState, limits: Limits) -> Move:
    """Return what follows for a task. `run` has the questions, the answers and what was spent."""
    if record.status == outcome.WAITING:
        return _of_waiting(task, record, run, limits)
    if record.status not in schedule.RUNNABLE:
        return Move(DONE)
    if record.intended:
        return Move(FINISH)
    if record.attempt.opened is not None:
        return Move(WAIT, says=f"{task.id} is open in an editor")
    if record.attempt.running:
        return Move(INTERRUPT)
    if record.status == outcome.RUNNING and record.attempt.outcome is not None:
        return _after_attempt(task, plan, record, run, limits)
    if failures.kind(record.attempt.failure).stops and limits.just_ended:
        return Move(HALT, says=f"{task.id}: {record.reason}. {record.attempt.next_step}")
    return _before_attempt(task, record, run, limits)


def _before_attempt(task: Task, record: TaskState, run: RunState, limits: Limits) -> Move:
    """Return what a person must decide before another attempt begins; otherwise it starts."""
    if record.effect == EFFECT and not limits.judges_only:
        question = questions.effect_question(task, record.attempt.number, record.reason)
        choice = _answer(run, question)
        if choice is None:
            why = "it may have had its effect already"
            says = f"{task.id} may already have had its effect, and waits for your answer before it is retried"
            return Move(ASK, why, says, question)
        if choice != questions.AGAIN:
            return Move(SKIP, "skipped by a person")
    ceiling = budget.reached(limits.settings, run, task.id)
    if ceiling is None:
        return _about_base(task, run, limits) if limits.dirty else Move(START)
    words = f"the ceiling of the {ceiling.scope} is reached: {ceiling.words}"
    if budget.is_stopped(run, task.id, ceiling):
        return Move(FAIL, words, f"{task.id}: {words}")
    return Move(ASK, words, f"{task.id}: {words}", budget.question(task, ceiling, run))


def _about_base(task: Task, run: RunState, limits: Limits) -> Move:
    """Return what follows uncommitted changes of the user in files that the task declares."""
    question = questions.base_question(task, run, limits.dirty)
    choice = _answer(run, question)
    if choice is None:
        return Move(ASK, question.what, question.what, question)
    if choice == questions.COMMIT:
        return Move(WAIT, says=f"{task.id} waits for your commit of {wording.listed(limits.dirty)}")
    return Move(START) if choice == MINE else Move(FAIL, f"answered {choice}", question.what)


def _after_attempt(task: Task, plan: Plan, record: TaskState, run: RunState, limits: Limits) -> Move:
    """Return what follows an attempt that failed."""
    attempt, strict = record.attempt, STRICT in (plan.mode, run.mode)
    if attempt.failure is not None and not attempt.deviates:
        fresh = attempt.failure == agent.CONTEXT_EXHAUSTED and record.progress.exhausted <= schedule.MOST_CONTEXTS
        over = attempt.failure == agent.OVER_BUDGET and budget.reached(limits.settings, run, task.id) is not None
        if fresh or over:
            return _before_attempt(task, record, run, limits)
    if schedule.tries_again(task, plan.mode, record, limits.max_attempts):
        return _before_attempt(task, record, run, limits)
    if attempt.outcome == outcome.TIMED_OUT and task.on_timeout == "skip":
        return Move(SKIP, "timed out, and the plan says skip")
    question = _question_of_failure(task, record)
    if question is not None:
        choice = _answer(run, question)
        if choice is None:
            words = "cannot start" if question.kind == questions.PRECONDITION else "failed"
            return Move(ASK, record.reason, f"{task.id} {words} and waits for your decision", question)
        if choice == questions.RETRY:
            return Move(RESET, ANSWERED)
        if choice == questions.SKIP:
            return Move(SKIP, "skipped by a person")
    if attempt.deviates:
        return _about_strays(task, record, run, limits, strict=strict)
    beside = exhausted_tasks.question(task, record, record.reason) if _asks_at_end(task, record, strict) else None
    return Move(FAIL, record.reason, _halts(task, record, run, limits, strict=plan.mode == STRICT), beside)


def _question_of_failure(task: Task, record: TaskState) -> Decision | None:
    """Return the question about a failed task before it fails for good; None if nobody is asked.

    That is if the plan says so, and if a precondition does not hold, unless the plan says that it blocks.
    """
    number, reason = record.attempt.number, record.reason
    if questions.is_unmet_precondition(record.attempt.outcome, reason) and task.on_failure != "block":
        return questions.precondition_question(task, number, reason)
    asks = task.on_failure == "ask" and not record.attempt.deviates
    return questions.failure_question(task, number, reason) if asks else None


def _about_strays(task: Task, record: TaskState, run: RunState, limits: Limits, *, strict: bool) -> Move:
    """Return what follows undeclared changes. A person may keep them or leave them out, unless one names a secret."""
    failed = Move(FAIL, record.reason, f"{task.id} {record.reason}")
    decided = limits.decided or limits.secret or (strict and not limits.in_editor)
    if decided or not (limits.strays or limits.protected):
        return failed
    about = questions.others_question if limits.in_editor else questions.strays_question
    question = about(task, record.attempt.number, limits.strays, limits.protected)
    choice = _answer(run, question)
    if choice is None:
        return Move(ASK, record.reason, f"{task.id} {record.reason}", question)
    return _of_strays(choice, failed)


def _of_strays(choice: str, failed: Move) -> Move:
    return Move(JUDGE) if choice in (KEEP, LEAVE_OUT) else failed


def _asks_at_end(task: Task, record: TaskState, strict: bool) -> bool:  # noqa: FBT001 - a fact about the run
    """Return whether a task that failed for good leaves a question: not if strict mode or the plan decides."""
    if strict or task.is_human or record.attempt.outcome in (outcome.REFUSED, outcome.ERRORED):
        return False
    if record.attempt.outcome == outcome.TIMED_OUT and task.on_timeout not in (None, "retry"):
        return False
    return task.on_failure not in ("block", "ask")


def _halts(task: Task, record: TaskState, run: RunState, limits: Limits, *, strict: bool) -> str:
    """Return why the run halts if the task fails; "" if it goes on."""
    if strict:
        return f"{task.id} failed: {record.reason}"
    count = run.failures_in_a_row + 1
    if count < limits.settings.run.halt_after:
        return ""
    return f"{count} tasks failed in a row; the last was {task.id}: {record.reason}"


_JUDGING = frozenset({"criterion", evidence.SECRET})


def _of_waiting(task: Task, record: TaskState, run: RunState, limits: Limits) -> Move:
    if not record.decisions:  # it waits for an answer from elsewhere, and looks for it again
        return Move(RESET, ELSEWHERE)
    if any(decision not in run.answers for decision in record.decisions):
        return Move(EXPIRE if limits.overdue else WAIT, says="waits for a person")
    first = record.decisions[0]
    kind, choice = run.decisions[first]["kind"], str(run.answers[first]["choice"])
    if f"{task.id}.work" in record.decisions:
        return Move(RESET, ANSWERED)
    return Move(JUDGE) if kind in _JUDGING else _of_choice(kind, choice)


def _of_choice(kind: str, choice: str) -> Move:
    """Return what a person's answer to a question about a task that stopped means."""
    failed = Move(FAIL, f"answered {choice}")
    if choice == questions.SKIP:
        return Move(SKIP, f"answered {choice}")
    if kind == DEVIATION:
        return _of_strays(choice, failed)
    if choice in (questions.RETRY, questions.AGAIN, budget.RAISE):
        return Move(RESET, ANSWERED, keeps_attempts=choice == budget.RAISE)
    return failed


def _answer(run: RunState, question: Decision) -> str | None:
    row = run.answers.get(question.id)
    return None if row is None else str(row["choice"])
