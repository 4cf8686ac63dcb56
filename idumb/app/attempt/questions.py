"""The questions that an attempt puts to a person, and what their answers prove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from idumb.app.core import next_actions, run_lookup
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import exposed_secrets
from idumb.domain import contract as contracts
from idumb.domain import outcome, settings, wording
from idumb.domain.decision import Answer, Choice, Decision, end_of
from idumb.domain.plans.plan import (
    COMPENSATABLE,
    HUMAN,
    REVERSIBLE,
    STRICT,
    Task,
)
from idumb.domain.proof import evidence, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import ANSWERED, RunState
from idumb.domain.runs.task_state import EFFECT, TaskState

DEVIATION_MARK = ".deviation."
DEVIATION = "deviation"
ACCEPT, RETRY, HALT = "accept", "retry", "halt"
WAITS = "waits"
YES, NO = "yes", "no"
DONE, NOT_DONE = "done", "not-done"
SKIP, FAIL, AGAIN = "skip", "fail", "again"
FAILURE = ".failure."
FAILURE_KIND = "failure"
PRECONDITION_MARK = ".precondition."
PRECONDITION = "precondition"
EFFECT_MARK = ".again."
_REFUSES = frozenset({NO, NOT_DONE})


def ask_about_strays(
    context: RunContext, task: Task, attempt: int, reason: str, statuses: Mapping[str, str]
) -> tuple[NewEvent, ...]:
    """Return the events by which a task waits for a person to judge undeclared changes; none if the run halts.

    `statuses` has the status of each path. The run halts in strict mode, if an option decides, if a person at the
    terminal was asked already, if the builder drives idumb itself and can undo the changes, and if a path is protected
    or its name holds a secret.
    """
    strays = [path for path, status in statuses.items() if status == ledger.UNDECLARED]
    plan, event = context.plans[task.id], context.journal.event
    decided = context.on_deviation is not None or context.services.asker.interactive
    if STRICT in (plan.mode, context.journal.state.mode) or decided:
        return ()
    if not strays or ledger.PROTECTED in statuses.values():
        return ()
    if contracts.in_editor(plan, task, context.services.settings) or exposed_secrets.any_in(context.services, strays):
        return ()
    question = _strays_question(task, attempt, strays)
    return (
        context.journal.question_event(question, task.id, attempt),
        event("task.waiting", task.id, attempt, decisions=[question.id], reason=reason),
    )


def ask_about_recorded_strays(context: RunContext, task: Task, task_state: TaskState) -> tuple[NewEvent, ...]:
    """Return the same events for an attempt that was recorded before idumb was killed."""
    lines = run_lookup.last_ledger(context.services, context.run, task.id)
    statuses = {line["path"]: line["status"] for line in lines if "path" in line}
    return ask_about_strays(context, task, task_state.attempt.number, task_state.reason, statuses)


def accepts_strays(context: RunContext, task: Task, strays: Sequence[str]) -> bool:
    """Return whether undeclared changes belong to the task by option, by answer or, if nobody can be asked, by setting.

    In strict mode nobody is asked.
    """
    if context.on_deviation is not None:
        return context.on_deviation == settings.ACCEPT
    if strays_accepted(context.journal.state, task.id, strays):
        return True
    asks = context.services.asker.interactive and context.plans[task.id].mode != STRICT
    return not asks and context.services.settings.run.on_deviation == settings.ACCEPT


def _strays_question(task: Task, attempt: int, strays: Sequence[str]) -> Decision:
    return Decision(
        id=f"{task.id}{DEVIATION_MARK}{attempt}",
        kind=DEVIATION,
        task=task.id,
        what=f"{task.id} changed files it does not declare: {wording.listed(strays)}",
        why="They may be the builder's or your own; idumb cannot tell and reverts nothing.",
        evidence=tuple(strays),
        choices=(
            Choice(ACCEPT, "they belong to the task, this once", "the task is retried, and they are committed with it"),
            Choice(
                RETRY,
                "they are mine, or wrong",
                next_actions.MOVED_AWAY,
            ),
            Choice(HALT, "leave it failed", "everything is kept as it is, and what depends on the task is blocked"),
        ),
    )


def ask_about_interrupted(
    context: RunContext, task: Task, strays: Sequence[str], reason: str
) -> tuple[tuple[NewEvent, ...], str]:
    """Ask what happens with undeclared changes since an attempt began that was interrupted.

    Return the events and the answer: `WAITS` if it comes later, `HALT` also if nobody may be asked.
    """
    state, event = context.journal.state, context.journal.event
    number, plan = state.tasks[task.id].attempt.number, context.plans[task.id]
    if STRICT in (plan.mode, state.mode) or context.on_deviation is not None:
        return (), HALT
    if exposed_secrets.any_in(context.services, strays):
        return (), HALT
    question = _interrupted_question(task, number, strays, protected=_protected(context, task, strays))
    asked = context.journal.question_event(question, task.id, number)
    if not context.services.asker.interactive:
        return (asked, event("task.waiting", task.id, number, decisions=[question.id], reason=reason)), WAITS
    answer = context.services.asker.ask(question)
    if answer is None or answer.choice == HALT:
        return (), HALT
    answered = context.journal.answer_event(answer, task.id, number)
    yours = is_yours(context, task, answer.choice)
    return (asked, answered, event("task.reset", task.id, reason=ANSWERED, **yours)), answer.choice


def accepts_interrupted(context: RunContext, task: Task, strays: Sequence[str]) -> bool:
    """Return whether such changes belong to the task without a question. No task may take a protected path."""
    return accepts_strays(context, task, strays) and not _protected(context, task, strays)


def _protected(context: RunContext, task: Task, strays: Sequence[str]) -> bool:
    lines = run_lookup.last_ledger(context.services, context.run, task.id)
    return any(line["status"] == ledger.PROTECTED and line["path"] in strays for line in lines)


def _interrupted_question(task: Task, attempt: int, strays: Sequence[str], *, protected: bool) -> Decision:
    accept = Choice(ACCEPT, "they belong to the task, this once", "the task is retried, and they are committed with it")
    return Decision(
        id=f"{task.id}{DEVIATION_MARK}{attempt}",
        kind=DEVIATION,
        task=task.id,
        what=f"{task.id} was interrupted; since it began, files changed that it does not declare:"
        f" {wording.listed(strays)}",
        why="The attempt may have changed them, or you did; idumb cannot tell and reverts nothing.",
        evidence=tuple(strays),
        choices=(
            *(() if protected else (accept,)),
            Choice(RETRY, "they are mine", "they stay as they are, and the task is retried on top of them"),
            Choice(HALT, "leave it failed", "everything is kept as it is, and what depends on the task is blocked"),
        ),
    )


def is_yours(context: RunContext, task: Task, choice: str) -> dict[str, list[str]]:
    """Return the fields of `task.reset` if a person said that what changed during an interrupted attempt is theirs."""
    task_state = context.journal.state.tasks[task.id]
    interrupted = task_state.attempt.outcome == outcome.CANCELLED and bool(task_state.work.deviations)
    return {"yours": list(task_state.work.deviations)} if interrupted and choice == RETRY else {}


def waits_about_strays(task_state: TaskState) -> bool:
    """Return whether a task waits for such an answer."""
    return any(DEVIATION_MARK in decision for decision in task_state.decisions)


def strays_accepted(state: RunState, task: str, strays: Sequence[str]) -> bool:
    """Return whether a person accepted each of these files for the task."""
    accepted = [i for i, answer in state.answers.items() if DEVIATION_MARK in i and answer["choice"] == ACCEPT]
    mine = [state.decisions[i] for i in accepted if state.decisions.get(i, {}).get("task") == task]
    return set(strays) <= {path for question in mine for path in question["evidence"]}


def criterion_questions(task: Task, attempt: int, changes: Sequence[ledger.Change]) -> tuple[Decision, ...]:
    """Return a question for each criterion that a person proves. Tasks for people are one question."""
    if task.is_human:
        return ()
    shown = tuple(f"{c.kind} {c.path}" for c in changes[:20])
    return tuple(
        Decision(
            id=f"{task.id}.{criterion.id}.{attempt}",
            kind="criterion",
            task=task.id,
            subject=criterion.id,
            what=f"{task.id} {criterion.id}: {criterion.text}",
            why="The plan says that a person judges this criterion.",
            evidence=(*criterion.instructions, *shown),
            choices=(
                Choice(YES, "it holds", "the criterion counts as proven by you"),
                Choice(NO, "it does not hold", "the attempt fails"),
            ),
        )
        for criterion in task.acceptance
        if criterion.proof == HUMAN
    )


def validator_question(
    task: Task,
    attempt: int,
    changes: Sequence[ledger.Change],
    why: str = "The plan says that a person validates this task.",
    reply: str = "",
) -> Decision:
    """Return the question whether a task is good, asked if a person validates it or no validator could.

    `why` explains it, `reply` is the validator's answer.
    """
    shown = (reply,) if reply else ()
    return Decision(
        id=f"{task.id}.validator.{attempt}",
        kind="criterion",
        task=task.id,
        subject="validator",
        what=f"{task.id}: {task.title}",
        why=why,
        evidence=(*shown, *(c.text for c in task.acceptance), *(f"{c.kind} {c.path}" for c in changes[:20])),
        choices=(
            Choice(YES, "it is good", "the task counts as validated by you"),
            Choice(NO, "it is not", "the attempt fails"),
        ),
    )


def work_question(task: Task) -> Decision:
    """Return the question that asks a person to do the task."""
    if task.kind == "decision" and task.options:
        choices = tuple(Choice(o.id, o.text, f"the record says {o.id}") for o in task.options)
    elif task.kind == "human-verify":
        choices = (
            Choice(YES, "it is as it should be", "the task is complete"),
            Choice(NO, "it is not", "the task fails and what depends on it is blocked"),
        )
    else:
        choices = (
            Choice(DONE, "it is done", "idumb runs the task's checks"),
            Choice(NOT_DONE, "it cannot be done", "the task fails and what depends on it is blocked"),
        )
    steps = tuple(line for c in task.acceptance for line in (c.text, *c.instructions))
    return Decision(
        id=f"{task.id}.work",
        kind=task.kind if task.is_human else "human-action",
        task=task.id,
        subject="work",
        what=f"{task.id}: {task.title}",
        why=task.description or "The plan leaves this task to a person.",
        evidence=steps,
        choices=choices,
    )


_THEN = {"fail": "this step fails", "skip": "this step is omitted", "retry": "you are asked again"}
UNANSWERED = "nobody answered in time, so the answer is no"


def with_time_limit(question: Decision, task: Task, now: str) -> Decision:
    """Return the question of a workflow's step with the time until which it waits; unchanged if it has none."""
    if task.flow is None or task.timeout is None:
        return question
    until = end_of(now, task.timeout)
    line = f"without an answer until {until[:19].replace('T', ' ')} UTC, {_THEN[task.on_timeout or 'fail']}"
    return replace(question, until=until, evidence=(*question.evidence, line))


def is_over(asked: Iterable[Decision], now: str) -> bool:
    """Return whether the time of one of these questions is over."""
    return any(question.seconds_left(now) == 0 for question in asked)


def failure_question(task: Task, attempt: int, reason: str) -> Decision:
    """Return the question of a failed task with `On failure: ask`."""
    return _about_failure(
        f"{task.id}{FAILURE}{attempt}",
        FAILURE_KIND,
        task,
        f"{task.id} {task.title} failed",
        "The plan leaves this decision to a person (`On failure: ask`).",
        reason,
        Choice(RETRY, "retry it", "the next attempt gets the feedback of this one"),
        "skip it",
    )


def precondition_question(task: Task, attempt: int, reason: str) -> Decision:
    """Return the question of a task that was not started, because a precondition does not hold."""
    return _about_failure(
        f"{task.id}{PRECONDITION_MARK}{attempt}",
        PRECONDITION,
        task,
        f"{task.id} {task.title} cannot start: a precondition does not hold",
        "Work on a wrong basis is wrong work, so nothing was built.",
        reason,
        Choice(RETRY, "make it true, then check it again", "the task runs if its preconditions hold then"),
        "skip the task",
    )


def _about_failure(
    id: str, kind: str, task: Task, what: str, why: str, reason: str, retry: Choice, skip: str
) -> Decision:
    """Return the question whether a task is retried, skipped or left failed."""
    return Decision(
        id=id,
        kind=kind,
        task=task.id,
        what=what,
        why=why,
        evidence=tuple(reason.splitlines()[:20]),
        choices=(
            retry,
            Choice(SKIP, skip, "tasks that depend on it stay blocked"),
            Choice(FAIL, "leave it failed", "tasks that depend on it are blocked; independent tasks continue"),
        ),
    )


def is_unmet_precondition(ended: str | None, reason: str) -> bool:
    """Return whether an attempt ended with this reason because a precondition does not hold."""
    return ended == outcome.REFUSED and reason.startswith(f"{PRECONDITION} ")


def deviation_question(task: Task, strays: Sequence[str]) -> Decision:
    return Decision(
        id=f"{task.id}.deviation",
        kind="deviation",
        task=task.id,
        what=f"{task.id} changed files it does not declare",
        why="They may be the builder's or your own; idumb cannot tell and reverts nothing.",
        evidence=tuple(strays),
        choices=(
            Choice("accept", "they belong to the task", "they are checked and committed with it"),
            Choice("halt", "stop here", "the run halts, everything is kept, and you review them first"),
        ),
    )


def evidence_of_answers(
    questions: Iterable[Decision], answers: Iterable[Answer], tree: str | None
) -> tuple[Evidence, ...]:
    """Return people's answers as evidence; a question without an answer waits."""
    by_question = {answer.decision: answer for answer in answers}
    return tuple(_of_answer(question, by_question.get(question.id), tree) for question in questions)


def _of_answer(question: Decision, answer: Answer | None, tree: str | None) -> Evidence:
    subject = question.subject
    if answer is None:
        return Evidence(subject, question.what, evidence.WAITING, tree=tree)
    accepted = question.choice(answer.choice) is not None and answer.choice not in _REFUSES
    result = evidence.PASSED if accepted else evidence.FAILED
    output = f"{answer.by} answered {answer.choice}" + (f": {answer.guidance}" if answer.guidance else "")
    if question.kind == evidence.SECRET and result == evidence.FAILED:
        output = f"{output}; {exposed_secrets.WITHOUT_SECRET}"
    return Evidence(subject, question.what, result, output=output, tree=tree)


def effect_payload(task: Task) -> dict[str, str]:
    """Return the fields of an event about an attempt whose effects files alone cannot undo."""
    return {} if task.rollback.kind == REVERSIBLE or task.is_human else {"effect": EFFECT}


def ask_about_effect(context: RunContext, task: Task) -> str | None:
    """Return None if the task may start, `SKIP` if a person skipped it, else the id of the open question.

    Asked once for each attempt that may have had its effect: idumb cannot see whether it did.
    """
    task_state, event = context.journal.state.tasks[task.id], context.journal.event
    if task_state.effect != EFFECT:
        return None
    question = _effect_question(task, task_state.attempt.number, task_state.reason)
    answered = context.journal.state.answers.get(question.id)
    if answered is not None:
        return None if answered["choice"] == AGAIN else SKIP
    events = [context.journal.question_event(question, task.id, task_state.attempt.number)]
    answer = context.services.asker.ask(question)
    if answer is None:
        reason = "it may have had its effect already"
        events.append(event("task.waiting", task.id, task_state.attempt.number, decisions=[question.id], reason=reason))
    else:
        events.append(context.journal.answer_event(answer, task.id, task_state.attempt.number))
        if answer.choice == SKIP:
            events.append(event("task.skipped", task.id, task_state.attempt.number, reason="skipped by a person"))
    context.journal.write(*events)
    if answer is None:
        return question.id
    return None if answer.choice == AGAIN else SKIP


def _effect_question(task: Task, attempt: int, reason: str) -> Decision:
    compensatable = task.rollback.kind == COMPENSATABLE
    how = "can be undone only by the commands of the plan" if compensatable else "cannot be undone"
    lines = (
        reason,
        task.rollback.reason,
        *(f"undone by: {command}" for command in task.rollback.commands),
        f"idumb accept {task.id} --why REASON marks it as done",
    )
    return Decision(
        id=f"{task.id}{EFFECT_MARK}{attempt}",
        kind="effect",
        task=task.id,
        what=f"{task.id} {task.title} may have had its effect already",
        why=f"An attempt started, and its effect {how}. idumb cannot tell whether it happened.",
        evidence=tuple(line for line in lines if line),
        choices=(
            Choice(AGAIN, "run it again", "the task starts again"),
            Choice(SKIP, "skip it", "tasks that depend on it stay blocked"),
        ),
    )


def recorded_answer(context: RunContext, question: Decision) -> Answer | None:
    """Return the answer to a question that the log has."""
    recorded = context.journal.state.answers.get(question.id)
    return Answer(question.id, recorded["choice"], recorded["by"], recorded.get("guidance", "")) if recorded else None
