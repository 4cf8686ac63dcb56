"""Agents that fail, crash, take too long or use too much: what the engine does next (R-ADAPT-3, R-RUN-5)."""

from __future__ import annotations

import dataclasses

import pytest

from idumb.domain import agent, outcome
from idumb.domain.action import Answer
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.plans.plan import GUIDED, STRICT
from idumb.domain.settings import Binding, Ceiling, Settings
from tests.support.cases import every
from tests.support.engine_run import EngineRun, make_own_files, task

NETWORK = AgentResult(outcome.ERRORED, "no route", failure="network")
CRASHED = AgentResult(outcome.FAILED, "killed", crashed=True)


def follows(*results: AgentResult | None) -> EngineRun:
    """An agent that adds its attempt to its file, and ends each call as the list says; None is done."""
    ends = list(results)

    def work(request: AgentRequest, files: dict[str, bytes]) -> AgentResult | None:
        files["A"] = files.get("A", b"") + b"%d" % request.attempt
        return ends.pop(0) if ends else None

    run = EngineRun(task("A"), work=work)
    run.builder.continues = True
    return run


@pytest.mark.parametrize(("mode", "count"), [(STRICT, 1), (GUIDED, 2)])
def test_a_validator_with_an_unusable_answer_is_asked_again_once_but_not_in_a_strict_run(mode: str, count: int) -> None:
    """R-RUN-3, R-ADAPT-3."""

    def work(request: AgentRequest, files: dict[str, bytes]) -> AgentResult | None:
        if request.role == agent.VALIDATOR:
            return AgentResult(outcome.COMPLETED, reply='{"verdict": "PASS", "evidence": "all of it"}')
        make_own_files(request, files)
        return None

    bindings = {name: Binding(name, "scripted") for name in ("builder", "judge")}
    settings = Settings(builder="builder", validator="judge", bindings=bindings)
    run = EngineRun(task("A"), work=work, mode=mode, settings=settings)
    run.run()
    assert [request.role for request in run.builder.requests].count(agent.VALIDATOR) == count


def test_a_strict_run_calls_its_builder_once() -> None:
    """R-ADAPT-3: strict never retries, a call as little as an attempt."""
    run = EngineRun(task("A"), work=lambda *_: NETWORK, mode=STRICT)
    assert run.run().kind == "halted"
    assert (run.calls, run.events("call.retried")) == ([("A", 1)], [])


@every("ended", [CRASHED, AgentResult(outcome.TIMED_OUT)])
def test_what_an_unfinished_call_left_is_removed_and_other_work_is_continued(ended: AgentResult) -> None:
    """R-RUN-5, R-PLAN-3, R-ADAPT-3: files left by a crash or at a timeout are not the builder's intended result."""
    run = follows(ended, AgentResult(outcome.FAILED, "no"), None)
    assert run.run().kind == "done"
    assert run.repository.files["A"] == b"23"


def test_the_same_failure_on_the_same_bytes_is_not_repeated() -> None:
    declined = AgentResult(outcome.FAILED, "no", failure=agent.DECLINED)
    run = EngineRun(task("A"), work=lambda *_: declined)
    run.run()
    assert (run.calls, run.status()) == ([("A", 1), ("A", 2)], {"A": "failed"})
    assert "declined the work" in run.state.tasks["A"].reason


def test_a_ceiling_that_is_not_raised_ends_the_task() -> None:
    """R-ADAPT-3: unreported usage is unknown, so the attempts are what is limited. The next process has the answer."""
    run = EngineRun(task("A"), work=lambda *_: None)
    run.settings = dataclasses.replace(run.settings, ceilings={"task": Ceiling(attempts=1, tokens=5)})
    assert run.run().kind == "waiting"
    (question,) = run.state.decisions
    process = run.process()
    process.journal.write(process.journal.answer_event(Answer(question, "stop", "Pat"), "A", 1))
    run.run()
    assert (run.calls, run.status()) == ([("A", 1)], {"A": "failed"})


def test_a_task_fails_after_too_many_exhausted_contexts() -> None:
    """R-RUN-10: they count as no attempt, and end all the same."""
    run = follows(*(AgentResult(outcome.FAILED, "full", failure=agent.CONTEXT_EXHAUSTED) for _ in range(9)))
    run.run(max_attempts=1)
    assert (len(run.calls), run.status()) == (4, {"A": "failed"})
    (question,) = run.state.decisions.values()
    assert str(question["what"]).endswith("failed after 4 attempts")
