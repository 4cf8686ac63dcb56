"""What follows for a task is decided in one pure function: each stage, outcome and answer has its move (R-RUN-1).

And which task comes next, with the status shown for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

import idumb
from idumb.app.core import questions, schedule
from idumb.app.core.questions import Deviations
from idumb.app.core.schedule import blockers, ready, statuses, tries_again
from idumb.app.engine import follow
from idumb.app.engine.follow import Circumstances, Move
from idumb.domain import action, agent, outcome
from idumb.domain.action import Decision
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.domain.plans.plan import GUIDED, HUMAN, STRICT, Criterion, RollbackClass, Step, Task
from idumb.domain.runs.run import EFFECT, AttemptState, RunState, TaskProgress, TaskState
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import Ceiling, RunSettings, Settings
from tests.support.cases import every

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
    answers: Iterable[tuple[Decision, str]] = (),
    failures: int = 0,
    settings: Settings = SETTINGS,
    spent: int = 0,
    **limits: Any,
) -> Move:
    run = RunState(id="r", mode=mode, failures_in_a_row=failures, tasks={task.id: record})
    for question, choice in answers:
        run.decisions[question.id] = question.row()
        run.answers[question.id] = {"choice": choice}
    run.tasks[task.id] = replace(record, progress=replace(record.progress, spent=Spent(attempts=spent)))
    return follow.follow(task, run.tasks[task.id], run, Circumstances(settings, **{"max_attempts": 3, **limits}))


def waiting(*decisions: str, **fields: Any) -> TaskState:
    attempt = replace(FAILED.attempt, **{"outcome": outcome.WAITING, **fields})
    return replace(FAILED, status=outcome.WAITING, decisions=decisions, attempt=attempt)


# Stages

PENDING = TaskState("T1-01", "d")
BY_STAGE = {
    "never attempted": (PENDING, action.START),
    "open in an editor": (replace(FAILED, attempt=AttemptState(1, running=True, opened={"by": "me"})), action.WAIT),
    "killed while it ran": (replace(FAILED, attempt=AttemptState(1, running=True)), follow.INTERRUPT),
    "killed before its commit": (replace(ended(outcome.COMPLETED), intended=True), action.FINISH),
    "interrupted": (replace(PENDING, attempt=AttemptState(1, outcome=outcome.CANCELLED)), action.START),
    "completed": (replace(FAILED, status=outcome.COMPLETED), follow.DONE),
    "accepted": (replace(FAILED, status=outcome.ACCEPTED), follow.DONE),
    "skipped": (replace(FAILED, status=outcome.SKIPPED), follow.DONE),
    "omitted": (replace(FAILED, status=outcome.OMITTED), follow.DONE),
    "failed for good": (replace(FAILED, status=outcome.FAILED), follow.DONE),
    "waits for an answer from elsewhere": (waiting(), action.RESET),
    "waits for a person": (waiting("T1-01.AC-1.1"), action.WAIT),
}


@every("stage", BY_STAGE)
def test_each_stage_has_its_move(stage: str) -> None:
    record, kind = BY_STAGE[stage]
    assert moved(record).kind == kind


def test_a_question_that_nobody_answered_in_time_expires() -> None:
    assert moved(waiting("T1-01.work"), overdue=True).kind == follow.EXPIRE


# Outcomes

AT_CEILING: dict[str, Any] = {"settings": Settings(ceilings={"task": Ceiling(attempts=1)}), "spent": 1}
TRIES: dict[str, tuple[TaskState, dict[str, Any], str]] = {
    "attempts are left": (ended(), {}, action.START),
    "none are left": (ended(attempts=3), {}, action.FAIL),
    "the limit is one": (ended(), {"max_attempts": 1}, action.FAIL),
    "strict mode": (ended(), {"mode": STRICT}, action.FAIL),
    "it could not be judged": (ended(outcome.ERRORED), {}, action.FAIL),
    "an agent repeats itself": (
        replace(ended(adapter="claude"), progress=TaskProgress(attempts=2, repeated=1)),
        {},
        action.FAIL,
    ),
    "a deterministic run refused it": (ended(unlike=True), {}, action.FAIL),
    "its context was full": (ended(failure=agent.CONTEXT_EXHAUSTED, attempts=3), {}, action.START),
    "too many contexts were full": (
        replace(ended(failure=agent.CONTEXT_EXHAUSTED), progress=TaskProgress(attempts=3, exhausted=4)),
        {},
        action.FAIL,
    ),
    "its context was full after it strayed": (ended(failure=agent.CONTEXT_EXHAUSTED, deviates=True), {}, action.FAIL),
    "nobody can accept its undeclared changes": (ended(deviates=True), {}, action.FAIL),
    "it used up a ceiling": (ended(failure=agent.OVER_BUDGET, attempts=3), AT_CEILING, follow.ASK),
    "it used up its own budget": (ended(failure=agent.OVER_BUDGET, attempts=3), {}, action.FAIL),
    "it took too long": (ended(outcome.TIMED_OUT), {}, action.START),
    "a hook changed what was proven": (ended(outcome.COMPLETED, deviates=True), {}, action.FAIL),
}


@every("case", TRIES)
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
    assert asked(ended(), replace(TASK, on_timeout="fail"))


def test_the_run_halts_in_strict_mode_and_after_failures_in_a_row() -> None:
    """R-RUN-5."""
    limit = Settings(run=RunSettings(halt_after=2))
    assert moved(ended(), max_attempts=1, settings=limit).says == ""
    for before in (1, 2):
        says = moved(ended(), max_attempts=1, settings=limit, failures=before).says
        assert says.startswith(f"{before + 1} tasks failed in a row")
    assert moved(ended(), mode=STRICT).says == "T1-01 failed: AC-1 failed"


def test_an_agent_that_cannot_work_stops_the_run_that_met_it_and_no_later_one() -> None:
    record = replace(ended(outcome.ERRORED, failure=agent.MISSING, next_step="install it"), status=outcome.PENDING)
    assert moved(record, just_ended=True) == Move(follow.HALT, says="T1-01: AC-1 failed. install it")
    assert moved(record).kind == action.START


def test_the_plan_says_what_follows_a_timeout_except_in_strict_mode() -> None:
    """R-RUN-5, R-PLAN-3."""
    for says, kind in (("skip", action.SKIP), ("fail", action.FAIL), ("retry", action.START)):
        assert moved(ended(outcome.TIMED_OUT), replace(TASK, on_timeout=says)).kind == kind
    assert moved(ended(outcome.TIMED_OUT), mode=STRICT).kind == action.FAIL
    assert moved(ended(attempts=3), replace(TASK, on_timeout="skip")).kind == action.FAIL


@every("adapter, choice, kind", [
    (agent.HUMAN, "no", action.FAIL),
    (agent.HUMAN, "yes", action.START),
    ("claude", "no", action.START),
    (agent.STEPS, "no", action.START),
])  # fmt: skip
def test_a_person_who_refused_a_task_gets_no_further_attempt(adapter: str, choice: str, kind: str) -> None:
    question = questions.work(replace(TASK, kind="human-verify"), 1)
    assert moved(ended(adapter=adapter), answers=[(question, choice)]).kind == kind


# Questions and their answers

ASKS = replace(TASK, on_failure="ask")
UNMET = ended(outcome.REFUSED, reason="precondition 1: file a exists (failed)")
DEVIATED = ended(deviates=True)
AFTER_EFFECT = replace(PENDING, effect=EFFECT, attempt=AttemptState(1, outcome=outcome.CANCELLED))
DEPLOYS = replace(TASK, rollback=RollbackClass("irreversible", reason="it is sent"))

QUESTIONS: dict[str, tuple[TaskState, Task, dict[str, Any], dict[str, str]]] = {
    "failure": (ended(), ASKS, {}, {"retry": action.RESET, "skip": action.SKIP, "fail": action.FAIL}),
    "precondition": (UNMET, TASK, {}, {"retry": action.RESET, "skip": action.SKIP, "fail": action.FAIL}),
    "undeclared changes": (
        DEVIATED,
        TASK,
        {"deviations": Deviations(("b",))},
        {"keep": action.JUDGE, "leave-out": action.JUDGE, "stop": action.FAIL},
    ),
    "effect": (AFTER_EFFECT, DEPLOYS, {}, {"again": action.RESET, "skip": action.SKIP}),
    "ceiling": (ended(), TASK, AT_CEILING, {"raise": action.RESET, "stop": action.FAIL}),
}


def question_of(name: str) -> Decision:
    record, task, given, _ = QUESTIONS[name]
    move = moved(record, task, **given)
    assert (move.kind, move.says) == (follow.ASK, "")
    assert move.question is not None
    return move.question


@every("name", QUESTIONS)
def test_every_choice_of_a_question_has_its_move(name: str) -> None:
    """R-ASK-2, R-PLAN-3."""
    record, task, given, moves = QUESTIONS[name]
    question = question_of(name)
    waits = replace(record, status=outcome.WAITING, decisions=(question.id,))
    found = {c.id: moved(waits, task, answers=[(question, c.id)], **given).kind for c in question.choices}
    assert found == moves


def test_what_an_answer_permitted_begins_without_another_question() -> None:
    effect, limit = question_of("effect"), question_of("ceiling")
    assert moved(AFTER_EFFECT, DEPLOYS, answers=[(effect, "again")]).kind == action.START
    assert moved(ended(), answers=[(limit, "raise")], **AT_CEILING).kind == action.START
    assert moved(ended(), answers=[(limit, "stop")], **AT_CEILING).kind == action.FAIL


@every("choice, kind", [("commit", action.WAIT), ("mine", action.START), ("stop", action.FAIL), (None, follow.ASK)])
def test_changes_of_the_user_in_declared_files_are_asked_about_file_by_file(choice: str | None, kind: str) -> None:
    """R-GIT-6: an answer holds for the files that it is about."""
    question = moved(PENDING, dirty=("a", "b")).question
    assert question is not None
    answers = [] if choice is None else [(question, choice)]
    assert moved(PENDING, dirty=("b",), answers=answers).kind == kind
    assert moved(PENDING, dirty=("b", "c"), answers=answers).kind == follow.ASK
    assert moved(PENDING, answers=answers).kind == action.START


def test_a_raised_ceiling_keeps_the_count_of_attempts() -> None:
    question = question_of("ceiling")
    later = waiting(question.id, outcome=outcome.FAILED)
    move = moved(later, answers=[(question, "raise")], **AT_CEILING)
    assert (move.kind, move.keeps_attempts) == (action.RESET, True)


@every("given", [{"mode": STRICT}, {"decided": True}, {"secret": True}])
def test_nobody_is_asked_about_undeclared_changes_that_an_option_or_strict_mode_decides(given: dict[str, Any]) -> None:
    move = moved(DEVIATED, deviations=Deviations(("b",)), **given)
    assert (move.kind, move.says != "") == (action.FAIL, True)


def test_a_failed_task_that_a_person_retries_begins_to_count_again() -> None:
    question = question_of("failure")
    move = moved(waiting(question.id), ASKS, answers=[(question, "retry")])
    assert (move.kind, move.keeps_attempts) == (action.RESET, False)


@every("mode, says", [(GUIDED, ""), (STRICT, "T1-01 failed: AC-1 failed")])
def test_a_task_that_a_person_lets_fail_halts_only_a_strict_run(mode: str, says: str) -> None:
    question = question_of("failure")
    move = moved(waiting(question.id), ASKS, mode=mode, answers=[(question, "fail")])
    assert (move.kind, move.says) == (action.FAIL, says)


def test_a_plan_that_says_block_asks_nobody_about_a_precondition() -> None:
    assert moved(UNMET, replace(TASK, on_failure="block")).kind == action.FAIL


JUDGED = replace(TASK, acceptance=(Criterion("AC-1", "It is good", HUMAN), Criterion("AC-2", "It is fast", HUMAN)))
OTHERS = (
    questions.validator(JUDGED, 1, ()),
    questions.secret(TASK, 1, ["a:1: the value of TOKEN"]),
    questions.work(replace(TASK, kind="human-verify"), 1),
)


@every("choice", ["yes", "no"])
def test_a_judgement_continues_the_attempt_whatever_it_is(choice: str) -> None:
    first, second = questions.criteria(JUDGED, 1, ())
    record = waiting(first.id, second.id)
    assert moved(record, answers=[(first, choice)]).kind == action.WAIT
    assert moved(record, answers=[(first, choice), (second, "yes")]).kind == action.JUDGE
    for question in OTHERS:
        assert moved(waiting(question.id), answers=[(question, choice)]).kind == action.JUDGE


def test_nothing_else_makes_a_move() -> None:
    made = re.compile(r"\bMove\(")
    package = Path(idumb.__file__).parent
    makers = {path.name for path in package.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))}
    assert makers == {"follow.py"}
    assert issubclass(Move, Struct)


def contract(dependencies: dict[str, tuple[str, ...]]) -> Contract:
    order = graph.topological_order(dependencies)
    return Contract("1", "f", (), {}, order, dependencies, "hash")


def state(**status: str) -> RunState:
    return RunState(tasks={task: TaskState(task, "d", status=s) for task, s in status.items()})


DIAMOND = {"A": (), "B": ("A",), "C": ("A",), "D": ("B", "C")}


@given(st.sets(st.sampled_from("ABCD")))
def test_a_task_is_offered_exactly_when_all_its_dependencies_are_completed(done: set[str]) -> None:
    """R-LOG-6, R-RUN-5: once, and none of those that never become complete."""
    statuses = {t: outcome.COMPLETED if t in done else outcome.PENDING for t in DIAMOND}
    assert set(ready(contract(DIAMOND), state(**statuses))) == {
        t for t in DIAMOND if t not in done and set(DIAMOND[t]) <= done
    }


def test_pending_tasks_are_shown_as_ready_pending_or_blocked() -> None:
    shown = statuses(contract(DIAMOND), state(A="completed", B="failed", C="pending", D="pending"))
    assert shown == {"A": "completed", "B": "failed", "C": "ready", "D": "blocked"}
    assert blockers(contract(DIAMOND), shown, "D") == ("B", "C")
    shown = statuses(contract(DIAMOND), state(A="skipped", B="pending", C="pending", D="pending"))
    assert [shown[t] for t in "BCD"] == ["blocked"] * 3


@every("repeated, retried", [(0, True), (1, False)])
def test_the_question_about_an_agent_that_failed_twice_in_the_same_way_says_so(*, repeated: int, retried: bool) -> None:
    """R-RUN-5: it has attempts left, so the number of its attempts explains nothing."""
    task_state = TaskState(
        "A",
        "d",
        attempt=AttemptState(outcome=outcome.FAILED, adapter="claude-code"),
        progress=TaskProgress(attempts=2, repeated=repeated),
    )
    why = questions.exhausted(Task("A", "a task"), task_state, repeats=schedule.repeats_itself(task_state)).why
    assert tries_again(Task("A", "a task"), GUIDED, task_state, 3) == retried
    assert why.startswith("It failed twice in the same way, so idumb does not retry it") != retried


@every(
    "tools, failed, retried",
    [
        (("edit_file",), 0, False),
        (("write_file", "delete_file"), 1, False),
        (("run",), 0, True),
        (("run", "edit_file"), 1, True),
        (("write_file",), None, True),
    ],
)
def test_a_failed_step_is_repeated_only_after_a_program_ran(
    tools: tuple[str, ...], failed: int | None, *, retried: bool
) -> None:
    """R-RUN-5: the same step on the same tree fails in the same way; a failed check, or a program, may not."""
    steps = tuple(Step(i, tool, "do it", {}) for i, tool in enumerate(tools))
    attempt = AttemptState(outcome=outcome.FAILED, adapter="steps", failed_step=failed)
    record = TaskState("A", "d", attempt=attempt, progress=TaskProgress(attempts=1))
    assert tries_again(Task("A", "a task", steps=steps), GUIDED, record, 3) is retried
    tolerated = Task("A", "a task", steps=tuple(replace(step, continue_on_error=True) for step in steps))
    assert tries_again(tolerated, GUIDED, record, 3)
    assert tries_again(Task("A", "a task"), GUIDED, replace(record, attempt=replace(attempt, adapter="model")), 3)
