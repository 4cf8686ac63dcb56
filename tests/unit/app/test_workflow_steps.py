"""The steps of a workflow on the engine: conditions, omitted steps, outputs, retries, and death at any point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.app.attempt import handoff_writer
from idumb.app.engine import moves, runner
from idumb.domain import outcome
from idumb.domain.action import seconds_until
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.plan import STEPS, Criterion, Handoff, Option, Task
from idumb.domain.plans.workflow import Flow, Take, Value, Workflow
from tests.support.cases import every
from tests.support.engine_run import EngineRun
from tests.support.engine_run import task as work
from tests.unit.app.test_recovery import JUDGED, answered

TYPES = {
    ("inputs", "big"): expression.BOOLEAN,
    ("steps", "a", "outcome"): expression.TEXT,
    ("steps", "a", "size"): expression.INTEGER,
}
OWN = (Criterion("AC-1", "idumb proves it", STEPS),)
SIZE = Value("size", expression.INTEGER, line=7)


def step(id: str, *needs: str, kind: str = workflow.AGENT, **flow: Any) -> Task:
    made = work(f"T1-{id}", *(f"T1-{need}" for need in needs), files=[id] if kind != workflow.CONDITION else [])
    criteria = OWN if flow.get("outputs") or kind == workflow.CONDITION else ()
    extra = {name: flow.pop(name) for name in ("timeout", "on_timeout", "handoff_to") if name in flow}
    return replace(made, acceptance=criteria, flow=Flow(id, kind, "All", **flow), **extra)


def choice(id: str, *needs: str, text: str, then: str = "", other: str = "") -> Task:
    named = {"then": tuple(f"T1-{x}" for x in then.split()), "otherwise": tuple(f"T1-{x}" for x in other.split())}
    condition = expression.parse(text, TYPES.get)
    return step(id, *needs, kind=workflow.CONDITION, condition=condition, text=text, **named)


def running(*tasks: Task, answers: Mapping[str, str] | None = None, big: bool = False, **fields: Any) -> EngineRun:
    """A run in which the agent answers `answers` of a step, and writes its file."""

    def build(request: AgentRequest, files: dict[str, bytes]) -> AgentResult | None:
        for path in request.allowed_paths:
            files[path] = request.subject.encode()
        reply = (answers or {}).get(request.subject.removeprefix("T1-"), "")
        return AgentResult(outcome.COMPLETED, reply=reply)

    head = Workflow("try", "1", "Tries it", values={"big": big})
    return EngineRun(*tasks, work=build, workflow=head, **fields)


def statuses(run: EngineRun) -> dict[str, str]:
    return {id.removeprefix("T1-"): status for id, status in run.status().items()}


BRANCHES = (
    step("a", outputs=(SIZE,)),
    choice("if", "a", text="steps.a.size > 3 or inputs.big", then="b", other="c"),
    step("b", "if"),
    step("c", "b", "if"),
    step("d", "c", takes={"B": Take("T1-b", "outcome")}),
    step("e", "d", takes={"SIZE": Take("T1-a", "size")}),
)


@every("size, big, omitted", [(9, False, {"c"}), (1, False, {"b", "d"}), (1, True, {"c"})])  # fmt: skip
def test_a_condition_omits_the_other_branch_and_what_takes_from_it(size: int, big: bool, omitted: set[str]) -> None:  # noqa: FBT001
    """R-PLAN-8: an omitted step counts as done."""
    run = running(*BRANCHES, answers={"a": f'{{"size": {size}}}'}, big=big)
    assert run.run().kind == "done"
    assert {id for id, status in statuses(run).items() if status == outcome.OMITTED} == omitted
    assert set(statuses(run).values()) == {outcome.COMPLETED, outcome.OMITTED}
    assert not {task.removeprefix("T1-") for task, _ in run.calls} & omitted
    assert run.builder.requests[-1].values["SIZE"] == str(size)
    assert all(event.payload["by"] == "T1-if" for event in run.events("task.omitted"))


def test_a_run_that_is_killed_anywhere_chooses_the_same_branch() -> None:
    """R-LOG-6."""
    clean = running(*BRANCHES, answers={"a": '{"size": 1}'})
    clean.run()
    for kill_at in range(1, len(clean.effects) + 1):
        run = running(*BRANCHES, answers={"a": '{"size": 1}'})
        assert run.run_until_killed(kill_at)
        assert run.run().kind == "done"
        assert statuses(run) == statuses(clean), kill_at
        assert run.state.tasks["T1-a"].outputs == {"size": 1}


@every(
    "reply, words",
    [
        ("no json", "output size is missing: the answer holds no size"),
        ('{"size": "3"}', "output size is not an integer: '3'"),
        ('{"size": true}', "output size is not an integer: 'true'"),
        ('{"size": 1}\n\n{"size": 2}', "it gives two different answers (size)"),
    ],
)
def test_a_wrong_output_fails_the_attempt_with_the_line_of_its_declaration(reply: str, words: str) -> None:
    run = running(step("a", outputs=(SIZE,), retries=1), answers={"a": reply})
    run.run()
    assert statuses(run) == {"a": outcome.FAILED}
    assert len(run.calls) == 2
    feedback = run.builder.requests[1].feedback
    assert words in feedback
    assert "01-PLAN.md:7" in feedback


@every(
    "value, content, expected",
    [
        (Value("x", "text", file="a"), b"two\nlines\n", "two\nlines"),
        (Value("x", "list", file="a"), b"two\nlines\n", ["two", "lines"]),
        (Value("x", "number", file="a"), b" 2.5 \n", 2.5),
        (Value("x", "choice", choices=("yes", "no"), file="a"), b"no", "no"),
        (Value("x", "boolean", file="a", key="k"), b'{"k": false}', False),
        (Value("x", "integer", file="a"), b"x", None),
        (Value("x", "integer", file="a", key="k"), b"{", None),
        (Value("x", "integer", file="a", key="k"), b"[]", None),
        (Value("x", "integer", file="a", key="k"), b"{}", None),
        (Value("x", "text", file="a"), b"\xff", None),
        (Value("x", "text", file="b"), b"x", None),
    ],
)
def test_an_output_in_a_file_is_read_from_the_proven_tree(value: Value, content: bytes, expected: object) -> None:
    def build(_: AgentRequest, files: dict[str, bytes]) -> None:
        files["a"] = content

    run = EngineRun(step("a", outputs=(value,), retries=0), work=build, workflow=Workflow("try", "1", ""))
    run.run()
    assert statuses(run) == {"a": outcome.COMPLETED if expected is not None else outcome.FAILED}
    assert run.state.tasks["T1-a"].outputs.get("x") == expected


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_a_step_has_as_many_attempts_as_it_says(retries: int) -> None:
    def build(request: AgentRequest, files: dict[str, bytes]) -> None:
        files["a"] = str(request.attempt).encode()

    failing = replace(step("a", retries=retries), verify=("false",))
    run = EngineRun(failing, work=build, workflow=Workflow("try", "1", ""))
    run.run()
    assert len(run.calls) == retries + 1


def _times_out(request: AgentRequest, files: dict[str, bytes]) -> AgentResult | None:
    for path in request.allowed_paths:
        files[path] = b"x"
    return AgentResult(outcome.TIMED_OUT, "too late") if request.subject == "T1-a" else None


@every(
    "action, expected, calls",
    [
        ("fail", {"a": "failed", "b": "pending", "c": "pending"}, 1),
        ("skip", {"a": "omitted", "b": "completed", "c": "omitted"}, 1),
        # An agent that failed twice in the same way is not called a third time.
        ("retry", {"a": "failed", "b": "pending", "c": "pending"}, 2),
    ],
)
def test_a_timeout_fails_omits_or_repeats_a_step(action: str, expected: Mapping[str, str], calls: int) -> None:
    """An omitted step blocks nothing, except what takes its outputs."""
    tasks = (
        step("a", timeout=5, on_timeout=action),
        step("b", "a"),
        step("c", "b", takes={"A": Take("T1-a", "outcome")}),
    )
    run = EngineRun(*tasks, work=_times_out, workflow=Workflow("try", "1", ""))
    run.run()
    assert statuses(run) == expected
    assert [task for task, _ in run.calls].count("T1-a") == calls


def test_an_output_of_an_omitted_step_is_null_in_a_condition() -> None:
    tasks = (
        step("a", timeout=5, on_timeout="skip", outputs=(SIZE,)),
        choice("b", "a", text="steps.a.size == null", then="c", other="d"),
        step("c", "b"),
        step("d", "b"),
    )
    run = EngineRun(*tasks, work=_times_out, workflow=Workflow("try", "1", ""))
    run.run()
    assert statuses(run) == {"a": "omitted", "b": "completed", "c": "completed", "d": "omitted"}


def asking(action: str | None, answers: Mapping[str, str] | None = None, **fields: Any) -> EngineRun:
    """A human step with a minute to answer, a step after it, and one that takes its choice."""
    asks = step("a", kind=workflow.HUMAN, timeout=60, on_timeout=action)
    asks = replace(asks, kind="decision", options=(Option("x", "the one"), Option("y", "the other")),
                               acceptance=(), files=(), verify=())  # fmt: skip
    takes = step("c", "b", takes={"A": Take("T1-a", "choice")})
    return EngineRun(asks, step("b", "a"), takes, answers=answers, workflow=Workflow("try", "1", ""), **fields)


@every(
    "action, expected",
    [
        (None, {"a": "failed", "b": "pending", "c": "pending"}),
        ("fail", {"a": "failed", "b": "pending", "c": "pending"}),
        ("skip", {"a": "omitted", "b": "completed", "c": "omitted"}),
        ("retry", {"a": "waiting", "b": "pending", "c": "pending"}),
    ],
)
def test_a_human_step_that_nobody_answers_in_time_is_answered_no(
    action: str | None, expected: Mapping[str, str]
) -> None:
    """R-PLAN-12: the time counts from the question, also across commands and kills."""
    run = asking(action)
    assert run.run().kind == "waiting"
    assert run.run().kind == "waiting", "its minute is not over"
    run.clock.seconds += 60
    for kill_at in range(1, 20):
        if not run.run_until_killed(len(run.effects) + kill_at):
            break
    run.run()
    assert statuses(run) == expected
    assert len(run.events("decision.asked")) == (2 if action == "retry" else 1)
    assert [e.payload["outcome"] for e in run.events("attempt.finished")][:2] == ["waiting", "timed_out"]


def test_a_human_step_is_asked_again_only_as_often_as_a_step_is_attempted() -> None:
    run = asking("retry")
    for _ in range(4):
        run.run()
        run.clock.seconds += 60
    assert statuses(run)["a"] == outcome.FAILED
    assert len(run.events("decision.asked")) == 3


def test_an_answer_in_time_counts_also_if_the_run_continues_later() -> None:
    run = asking("fail")
    run.run()
    run.answer("y")
    run.clock.seconds += 600
    assert run.run().kind == "done"
    assert run.state.tasks["T1-a"].outputs == {"choice": "y"}
    assert run.builder.requests[-1].values["A"] == "y"


def test_a_step_that_is_reset_asks_anew_with_its_whole_time() -> None:
    run = asking("fail")
    run.run()
    run.clock.seconds += 600
    run.run()
    journal = run.process().journal
    journal.write(journal.event("task.reset", "T1-a", reason="retry"))
    assert run.run().kind == "waiting"
    first, second = (event.payload["until"] for event in run.events("decision.asked"))
    assert seconds_until(second, first) > 600


def test_a_step_that_changes_nothing_makes_no_commit() -> None:
    def build(request: AgentRequest, files: dict[str, bytes]) -> AgentResult:
        if request.subject == "T1-b":
            files["b"] = b"x"
        return AgentResult(outcome.COMPLETED, reply='{"size": 4}')

    first = replace(step("a", outputs=(SIZE,)), files=(), verify=())
    run = EngineRun(first, step("b", "a"), work=build, workflow=Workflow("try", "1", ""))
    assert run.run().kind == "done"
    assert run.commits() == ["T1-b"]
    assert run.state.tasks["T1-a"].checkpoint is not None
    assert run.state.tasks["T1-a"].checkpoint.commit is None


@every("judged", [False, True])
def test_a_handoff_carries_the_outputs_and_the_summary_of_its_step(*, judged: bool) -> None:
    """R-HAND-1: it is written at once, also after a person judged the step."""
    said = {"size": 2, "summary": "all is well"}
    made = step("a", outputs=(SIZE, Value("summary", "text")), handoff_to=(Handoff("validator"),))
    made = replace(made, acceptance=(*made.acceptance, *JUDGED * judged))
    run = running(made, answers={"a": json.dumps(said)})
    process = answered(run).process() if judged else run.process()
    moves.resolve_waiting(process)
    runner.run_tasks(process)
    (event,) = run.events("handoff.created")
    assert (event.payload["outputs"], event.payload["summary"]) == (said, said["summary"])
    assert process.services.files.read(f"{handoff_writer.FOLDER}/{event.payload['handoff_id']}.md")
