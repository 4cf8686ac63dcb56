"""The questions that an attempt puts to a person, and what their answers prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from idumb.app.core import next_actions
from idumb.app.worktree import exposed_secrets
from idumb.domain import outcome, wording
from idumb.domain.decision import Answer, Choice, Decision, end_of
from idumb.domain.plans.plan import (
    COMPENSATABLE,
    HUMAN,
    REVERSIBLE,
    Task,
)
from idumb.domain.proof import evidence, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import BASE, DEVIATION, MINE, RunState
from idumb.domain.runs.task_state import EFFECT
from idumb.domain.settings import KEEP, LEAVE_OUT, STOP

DEVIATION_MARK = ".deviation."
RETRY = "retry"
WAITS = "waits"
YES, NO = "yes", "no"
DONE, NOT_DONE = "done", "not-done"
COMMIT = "commit"
SKIP, FAIL, AGAIN = "skip", "fail", "again"
FAILURE = ".failure."
FAILURE_KIND = "failure"
PRECONDITION_MARK = ".precondition."
PRECONDITION = "precondition"
EFFECT_MARK = ".again."
_REFUSES = frozenset({NO, NOT_DONE})


def strays_question(task: Task, attempt: int, undeclared: Sequence[str], protected: Sequence[str]) -> Decision:
    """Return the question what happens with changes outside the declared files; nobody can keep protected ones."""
    keep = Choice(KEEP, "they belong to the task, this once", "they are proven and delivered with it")
    return Decision(
        id=strays_id(task, attempt),
        kind=DEVIATION,
        task=task.id,
        what=f"{task.id} changed files it does not declare: {wording.listed((*undeclared, *protected))}",
        why=next_actions.NOT_DELIVERED,
        evidence=(*undeclared, *protected),
        choices=(
            *(() if protected else (keep,)),
            Choice(LEAVE_OUT, "go on without them", "the rest is proven again without them, then delivered"),
            Choice(STOP, "leave it failed", "nothing is delivered, and what depends on the task is blocked"),
        ),
    )


def others_question(task: Task, attempt: int, undeclared: Sequence[str], protected: Sequence[str]) -> Decision:
    """Return the same question about files that changed in the user's own tree while his editor built the task."""
    both = wording.listed((*undeclared, *protected))
    mine = Choice(LEAVE_OUT, "these are mine", "they stay as they are, uncommitted")
    return replace(
        strays_question(task, attempt, undeclared, protected),
        what=f"Since {task.id} was started, files changed that it does not declare: {both}",
        why="In strict mode, a person says whose they are.",
        choices=(
            mine,
            *(() if protected else (Choice(KEEP, "part of the task", "they are proven and committed with it"),)),
        ),
    )


def strays_id(task: Task, attempt: int) -> str:
    return f"{task.id}{DEVIATION_MARK}{attempt}"


def strays_kept(state: RunState, task: str, strays: Sequence[str]) -> bool:
    """Return whether a person kept each of these files for the task."""
    kept = [i for i, answer in state.answers.items() if DEVIATION_MARK in i and answer["choice"] == KEEP]
    mine = [state.decisions[i] for i in kept if state.decisions.get(i, {}).get("task") == task]
    return set(strays) <= {path for question in mine for path in question["evidence"]}


def base_question(task: Task, run: RunState, dirty: Sequence[str]) -> Decision:
    """Return the question what a task starts from that declares files with uncommitted changes of the user."""
    asked = [q for q in run.decisions.values() if (q["kind"], q.get("task")) == (BASE, task.id)]
    last = next((str(q["id"]) for q in asked if set(dirty) <= set(q["evidence"])), f"{task.id}.{BASE}.{len(asked) + 1}")
    return Decision(
        id=last,
        kind=BASE,
        task=task.id,
        what=f"{task.id} declares files with uncommitted changes of yours: {wording.listed(dirty)}",
        why="Its commit would contain them, and nothing was built yet.",
        evidence=tuple(dirty),
        choices=(
            Choice(COMMIT, "you commit them first", "the task waits, and starts from your commit"),
            Choice(MINE, "it starts from your version", "your changes are committed with the task"),
            Choice(STOP, "leave it failed", "nothing is built, and what depends on the task is blocked"),
        ),
    )


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


def effect_question(task: Task, attempt: int, reason: str) -> Decision:
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
