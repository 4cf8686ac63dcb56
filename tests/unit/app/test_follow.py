"""What follows for a task is decided in one pure function: each stage, outcome and answer has its move (R-RUN-1)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import idumb
from idumb.app.engine import follow
from idumb.app.engine.follow import Limits, Move
from idumb.domain import agent, outcome
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import GUIDED, STRICT, Plan, RollbackClass, Task
from idumb.domain.runs.run import ANSWERED, RunState
from idumb.domain.runs.spending import Spent
from idumb.domain.runs.task_state import EFFECT, AttemptState, TaskProgress, TaskState
from idumb.domain.settings import Ceiling, RunSettings, Settings

TASK = Task("T1-01", "Work")
FAILED = TaskState("T1-01", "d", outcome.RUNNING, "AC-1 failed", attempt=AttemptState(1, outcome=outcome.FAILED))
SETTINGS = Settings()


def ended(result: str = outcome.FAILED, *, reason: str = "AC-1 failed", attempts: int = 1, **fields: Any) -> TaskState:
    attempt = replace(FAILED.attempt, outcome=result, **fields)
    return replace(FAILED, reason=reason, attempt=attempt, progress=TaskProgress(attempts=attempts))


def moved(
    record: TaskState,
    task: Task = TASK,
    *,
    mode: str = GUIDED,
    answers: Mapping[str, tuple[Any, ...]] | None = None,
    failures: int = 0,
    settings: Settings = SETTINGS,
    spent: int = 0,
    **limits: Any,
) -> Move:
    """The move after `answers`: by id of the question its kind, the choice, and its evidence if that counts."""
    plan = Plan("p", "h", "1", "01", "A plan", "Done", tasks=(task,), mode=mode)
    run = RunState(id="r", mode=mode, failures_in_a_row=failures, tasks={task.id: record})
    for id, (kind, choice, *evidence) in (answers or {}).items():
        run.decisions[id] = {"id": id, "kind": kind, "task": task.id, "evidence": sum(evidence, ())}
        run.answers[id] = {"choice": choice}
    run.tasks[task.id] = replace(record, progress=replace(record.progress, spent=Spent(attempts=spent)))
    return follow.follow(task, plan, run.tasks[task.id], run, Limits(settings, **{"max_attempts": 3, **limits}))


def waiting(*decisions: str, **fields: Any) -> TaskState:
    attempt = replace(FAILED.attempt, **{"outcome": outcome.WAITING, **fields})
    return replace(FAILED, status=outcome.WAITING, decisions=decisions, attempt=attempt)


# Stages

PENDING = TaskState("T1-01", "d")
BY_STAGE = {
    "never attempted": (PENDING, follow.START),
    "open in an editor": (replace(FAILED, attempt=AttemptState(1, running=True, opened={"by": "me"})), follow.WAIT),
    "killed while it ran": (replace(FAILED, attempt=AttemptState(1, running=True)), follow.INTERRUPT),
    "killed before its commit": (replace(ended(outcome.COMPLETED), intended=True), follow.FINISH),
    "interrupted": (replace(PENDING, attempt=AttemptState(1, outcome=outcome.CANCELLED)), follow.START),
    "completed": (replace(FAILED, status=outcome.COMPLETED), follow.DONE),
    "accepted": (replace(FAILED, status=outcome.ACCEPTED), follow.DONE),
    "skipped": (replace(FAILED, status=outcome.SKIPPED), follow.DONE),
    "omitted": (replace(FAILED, status=outcome.OMITTED), follow.DONE),
    "failed for good": (replace(FAILED, status=outcome.FAILED), follow.DONE),
    "waits for an answer from elsewhere": (waiting(), follow.RESET),
    "waits for a person": (waiting("T1-01.AC-1.1"), follow.WAIT),
}


@pytest.mark.parametrize("stage", BY_STAGE)
def test_each_stage_has_its_move(stage: str) -> None:
    record, kind = BY_STAGE[stage]
    assert moved(record).kind == kind


def test_a_question_that_nobody_answered_in_time_expires() -> None:
    assert moved(waiting("T1-01.work"), overdue=True).kind == follow.EXPIRE


# Outcomes

AT_CEILING: dict[str, Any] = {"settings": Settings(ceilings={"task": Ceiling(attempts=1)}), "spent": 1}
TRIES: dict[str, tuple[TaskState, dict[str, Any], str]] = {
    "attempts are left": (ended(), {}, follow.START),
    "none are left": (ended(attempts=3), {}, follow.FAIL),
    "the limit is one": (ended(), {"max_attempts": 1}, follow.FAIL),
    "strict mode": (ended(), {"mode": STRICT}, follow.FAIL),
    "it could not be judged": (ended(outcome.ERRORED), {}, follow.FAIL),
    "an agent repeats itself": (
        replace(ended(adapter="claude"), progress=TaskProgress(attempts=2, repeated=1)),
        {},
        follow.FAIL,
    ),
    "a deterministic run refused it": (ended(unlike=True), {}, follow.FAIL),
    "its context was full": (ended(failure=agent.CONTEXT_EXHAUSTED, attempts=3), {}, follow.START),
    "too many contexts were full": (
        replace(ended(failure=agent.CONTEXT_EXHAUSTED), progress=TaskProgress(attempts=3, exhausted=4)),
        {},
        follow.FAIL,
    ),
    "its context was full after it strayed": (ended(failure=agent.CONTEXT_EXHAUSTED, deviates=True), {}, follow.FAIL),
    "it used up a ceiling": (ended(failure=agent.OVER_BUDGET, attempts=3), AT_CEILING, follow.ASK),
    "it used up its own budget": (ended(failure=agent.OVER_BUDGET, attempts=3), {}, follow.FAIL),
    "it took too long": (ended(outcome.TIMED_OUT), {}, follow.START),
    "a hook changed what was proven": (ended(outcome.COMPLETED, deviates=True), {}, follow.FAIL),
}


@pytest.mark.parametrize("case", TRIES)
def test_a_failed_attempt_is_tried_again_or_the_task_fails(case: str) -> None:
    record, given, kind = TRIES[case]
    assert moved(record, **given).kind == kind


def test_a_task_that_failed_for_good_leaves_a_question_unless_plan_or_mode_decides() -> None:
    def asked(record: TaskState, task: Task = TASK, **given: Any) -> bool:
        return moved(record, task, max_attempts=1, **given).question is not None

    assert asked(ended())
    assert not asked(ended(), mode=STRICT)
    assert not asked(ended(outcome.ERRORED))
    assert not asked(ended(), replace(TASK, on_failure="block"))
    assert not asked(ended(outcome.TIMED_OUT), replace(TASK, on_timeout="fail"))
    assert asked(ended(outcome.TIMED_OUT), replace(TASK, on_timeout="retry"))


def test_the_run_halts_in_strict_mode_and_after_failures_in_a_row() -> None:
    limit = Settings(run=RunSettings(halt_after=2))
    assert moved(ended(), max_attempts=1, settings=limit).says == ""
    assert moved(ended(), max_attempts=1, settings=limit, failures=1).says.startswith("2 tasks failed in a row")
    assert moved(ended(), mode=STRICT).says == "T1-01 failed: AC-1 failed"


def test_an_agent_that_cannot_work_stops_the_run_that_met_it_and_no_later_one() -> None:
    record = replace(ended(outcome.ERRORED, failure=agent.MISSING, next_step="install it"), status=outcome.PENDING)
    assert moved(record, just_ended=True) == Move(follow.HALT, says="T1-01: AC-1 failed. install it")
    assert moved(record).kind == follow.START


def test_a_task_that_timed_out_is_left_out_if_the_plan_says_so() -> None:
    assert moved(ended(outcome.TIMED_OUT), replace(TASK, on_timeout="skip")).kind == follow.SKIP


# Questions and their answers

ASKS = replace(TASK, on_failure="ask")
UNMET = ended(outcome.REFUSED, reason="precondition 1: file a exists (failed)")
STRAYED = ended(deviates=True)
AFTER_EFFECT = replace(PENDING, effect=EFFECT, attempt=AttemptState(1, outcome=outcome.CANCELLED))
DEPLOYS = replace(TASK, rollback=RollbackClass("irreversible", reason="it is sent"))

QUESTIONS: dict[str, tuple[TaskState, Task, dict[str, Any], dict[str, str]]] = {
    "failure": (ended(), ASKS, {}, {"retry": follow.RESET, "skip": follow.SKIP, "fail": follow.FAIL}),
    "precondition": (UNMET, TASK, {}, {"retry": follow.RESET, "skip": follow.SKIP, "fail": follow.FAIL}),
    "undeclared changes": (
        STRAYED,
        TASK,
        {"strays": ("b",)},
        {"keep": follow.JUDGE, "leave-out": follow.JUDGE, "stop": follow.FAIL},
    ),
    "effect": (AFTER_EFFECT, DEPLOYS, {}, {"again": follow.START, "skip": follow.SKIP}),
    "ceiling": (ended(), TASK, AT_CEILING, {"stop": follow.FAIL}),
}


def question_of(name: str) -> Decision:
    record, task, given, _ = QUESTIONS[name]
    move = moved(record, task, **given)
    assert (move.kind, move.says != "") == (follow.ASK, True)
    assert ("cannot start" in move.says) == (name == "precondition")
    assert move.question is not None
    return move.question


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_at_a_terminal_and_a_later_one_lead_to_the_same(name: str) -> None:
    """R-ASK-2, R-PLAN-3."""
    record, task, given, moves = QUESTIONS[name]
    question = question_of(name)
    later = replace(record, status=outcome.WAITING, decisions=(question.id,))
    for choice, kind in moves.items():
        answers = {question.id: (question.kind, choice)}
        assert moved(record, task, answers=answers, **given).kind == kind, choice
        again = {follow.START: follow.RESET}.get(kind, kind)  # a task that waits becomes pending first
        assert moved(later, task, answers=answers, **given).kind == again, choice


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_choice_of_a_question_has_a_move(name: str) -> None:
    question = question_of(name)
    without = {"raise"} if name == "ceiling" else set()  # the amount that it adds lies beside the record
    assert {choice.id for choice in question.choices} - without == set(QUESTIONS[name][3])


@pytest.mark.parametrize(
    ("choice", "kind"), [("commit", follow.WAIT), ("mine", follow.START), ("stop", follow.FAIL), (None, follow.ASK)]
)
def test_changes_of_the_user_in_declared_files_are_asked_about_file_by_file(choice: str | None, kind: str) -> None:
    """R-GIT-6: an answer holds for the files that it is about."""
    question = moved(PENDING, dirty=("a", "b")).question
    assert question is not None
    answers = {} if choice is None else {question.id: (question.kind, choice, question.evidence)}
    assert moved(PENDING, dirty=("b",), answers=answers).kind == kind
    assert moved(PENDING, dirty=("b", "c"), answers=answers).kind == follow.ASK
    assert moved(PENDING, answers=answers).kind == follow.START


def test_a_raised_ceiling_keeps_the_count_of_attempts() -> None:
    question = question_of("ceiling")
    later = waiting(question.id, outcome=outcome.FAILED)
    move = moved(later, answers={question.id: (question.kind, "raise")}, **AT_CEILING)
    assert (move.kind, move.keeps_attempts) == (follow.RESET, True)


@pytest.mark.parametrize("given", [{"mode": STRICT}, {"decided": True}, {"secret": True}])
def test_nobody_is_asked_about_undeclared_changes_that_an_option_or_strict_mode_decides(
    given: dict[str, Any],
) -> None:
    move = moved(STRAYED, strays=("b",), **given)
    assert (move.kind, move.says != "") == (follow.FAIL, True)


def test_changes_that_nobody_can_accept_fail_the_task() -> None:
    assert moved(STRAYED, strays=()).kind == follow.FAIL


def test_a_plan_that_says_block_asks_nobody_about_a_precondition() -> None:
    assert moved(UNMET, replace(TASK, on_failure="block")).kind == follow.FAIL


JUDGEMENTS = {"T1-01.AC-1.1": "criterion", "T1-01.validator.1": "criterion", "T1-01.secret.1": "secret"}


@pytest.mark.parametrize("decision", JUDGEMENTS)
@pytest.mark.parametrize("choice", ["yes", "no"])
def test_a_judgement_continues_the_attempt_whatever_it_is(decision: str, choice: str) -> None:
    record = waiting(decision, "T1-01.AC-2.1")
    answer = (JUDGEMENTS[decision], choice)
    assert moved(record, answers={decision: answer}).kind == follow.WAIT
    assert moved(record, answers={decision: answer, "T1-01.AC-2.1": ("criterion", "yes")}).kind == follow.JUDGE


def test_work_that_a_person_did_is_looked_at_in_a_new_attempt() -> None:
    answers = {"T1-01.work": ("human-action", "done")}
    assert moved(waiting("T1-01.work"), answers=answers) == Move(follow.RESET, ANSWERED)


def test_nothing_else_makes_a_move() -> None:
    made = re.compile(r"\bMove\(")
    package = Path(idumb.__file__).parent
    makers = {path.name for path in package.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))}
    assert makers == {"follow.py"}
    assert dataclasses.is_dataclass(Move)
