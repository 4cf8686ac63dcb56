"""Calls of agents: answers are safe for the log and the screen, whatever the adapter left in (R-ADAPT-1).

And what the engine does next if one fails, crashes, takes too long or uses too much (R-ADAPT-3, R-RUN-5).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from idumb.app.attempt import agent_client
from idumb.app.ports import Hear
from idumb.app.session import operation
from idumb.cli.opened_services import Silent
from idumb.composition.container import Container
from idumb.domain import agent, outcome
from idumb.domain.agent import AgentRequest, AgentResult, Capabilities, Claim, StepRecord
from idumb.domain.errors import StoreError
from idumb.domain.plans import plan
from idumb.domain.plans.plan import GUIDED, STRICT
from idumb.domain.runs.run import RunState
from idumb.domain.settings import Binding, Settings
from idumb.views.terminal.ask import Nobody
from tests.support import run_events
from tests.support.cases import every
from tests.support.engine_run import EngineRun, make_own_files, task
from tests.support.gitrepo import GitSandbox

TOKEN = "ghp_" + "a1B2" * 9


@dataclass
class Careless:
    """An adapter that passes on what its agent said as it is."""

    capabilities: Capabilities
    name: str = "careless"
    version: str = "1"
    continues: bool = True

    def run(self, request: AgentRequest) -> AgentResult:
        message = f"{TOKEN} {'x' * 5000}"
        step = StepRecord(0, message, message, {}, ok=True, response="")
        return AgentResult(outcome.COMPLETED, TOKEN, (f"{TOKEN}.txt",), session=message, steps=(step,), model=message)

    def describe(self) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize("calls_model", [False, True])
def test_small_fields_contain_no_secret_and_have_a_maximum_size(sandbox: GitSandbox, *, calls_model: bool) -> None:
    sandbox.write("kept.txt", "kept")
    sandbox.commit("start")
    services = Container(str(sandbox.root), Nobody, Silent)
    request = AgentRequest(agent.BUILDER, None, "", str(sandbox.root), ())
    with operation.owned(services, "test") as owned:
        call = agent_client.Call(Careless(Capabilities(calls_model=calls_model)), "b", request)
        result = agent_client.ask(services, owned.journal(RunState()), call)
    assert TOKEN not in repr(result)
    assert result.message.startswith("[redacted:")
    assert result.claimed_files[0].endswith(".txt")
    names = (result.session, result.model, result.steps[0].tool)
    assert [len(name or "") for name in names] == [agent_client.LONGEST_NAME] * 3
    assert len(result.steps[0].intent) == agent_client.LONGEST_INTENT


@dataclass
class Talkative:
    """An adapter that passes on every message of its agent."""

    said: Callable[[Hear], object]
    name: str = "talkative"
    version: str = "1"
    continues: bool = True
    capabilities: Capabilities = Capabilities(reports_progress=True)

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        assert hear is not None
        self.said(hear)
        return AgentResult(outcome.COMPLETED, request.role)

    def describe(self) -> tuple[str, ...]:
        return ()


TASK = plan.Task("T1-01", "Work")
STARTED = {**run_events.STARTED, "tasks": [["T1-01", "d"]]}


def heard(sandbox: GitSandbox, statuses: Callable[[Hear], object]) -> tuple[AgentResult, list[dict[str, object]]]:
    """Return the answer of a talkative builder, and the recorded messages."""
    sandbox.write("kept.txt", "kept")
    sandbox.commit("start")
    services = Container(str(sandbox.root), Nobody, Silent)
    request = AgentRequest(agent.BUILDER, TASK, "", str(sandbox.root), (), attempt=1)
    with operation.owned(services, "test") as owned:
        journal = owned.journal(RunState(id="run-1"))
        journal.write(journal.event("run.started", **STARTED))
        result = agent_client.ask(services, journal, agent_client.Call(Talkative(statuses), "b", request))
        payloads = [dict(event.payload) for event in services.log.events(kind="attempt.told")]
    return result, payloads


def test_status_messages_are_short_and_contain_no_secret(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: on one line, without lone halves of characters in the way."""
    _, payloads = heard(sandbox, lambda hear: hear(Claim("working", f"{TOKEN}\n\n  \ud800 {'x' * 100_000}")))
    message = str(payloads[0].pop("message"))
    assert payloads == [{"role": "builder", "state": "working", "number": 1}]
    assert message.startswith("[redacted:")
    assert "\n" not in message
    assert len(message) == agent_client.LONGEST_MESSAGE


def test_status_messages_do_not_flood_the_log(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: whatever adapter passes it on."""

    def says(hear: Hear) -> None:
        hear(Claim("never heard of"))
        for number in range(agent_client.MOST_TOLD + 10):
            hear(Claim("working", str(number)))

    _, payloads = heard(sandbox, says)
    assert [t["number"] for t in payloads] == list(range(1, agent_client.MOST_TOLD + 1))


def test_a_log_that_rejects_writes_does_not_stop_the_work(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: the next write meets the error and reports it."""
    went_on = []

    def says(hear: Hear) -> None:
        with contextlib.closing(sqlite3.connect(sandbox.root / ".git/idumb/store.db")) as db, db:
            db.execute("UPDATE owners SET fence = fence + 1")
        hear(Claim("working"))
        went_on.append(True)

    with pytest.raises(StoreError, match="taken over"):
        heard(sandbox, says)
    assert went_on == [True]


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


@pytest.mark.parametrize(
    ("written", "answer", "reason"),
    [
        ({}, {"reply": "Which one?\n\n- this"}, "it changed nothing, and said: Which one? - this"),
        ({}, {"message": "vetoed: a"}, "it changed nothing (vetoed: a)"),
        ({}, {"message": "vetoed: a", "output": '{"type": "result"}'}, "it changed nothing (vetoed: a)"),
        ({}, {}, "A was declared (create) and did not change"),
        ({"A": b"text"}, {"reply": "Done."}, ""),
    ],
)
def test_what_an_agent_that_changed_nothing_said_is_why_its_attempt_failed(
    written: dict[str, bytes], answer: dict[str, str], reason: str
) -> None:
    def work(_: AgentRequest, files: dict[str, bytes]) -> AgentResult:
        files.update(written)
        return AgentResult(outcome.COMPLETED, **answer)  # type: ignore[arg-type]

    run = EngineRun(task("A"), work=work)
    run.run()
    assert run.state.tasks["A"].reason == reason


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


def test_an_agent_that_does_nothing_twice_is_not_called_again_for_its_other_words() -> None:
    run = EngineRun(task("A"), work=lambda request, _: AgentResult(outcome.COMPLETED, reply=f"No {request.attempt}."))
    run.run(max_attempts=9)
    assert run.calls == [("A", 1), ("A", 2)]


def test_a_task_fails_after_too_many_exhausted_contexts() -> None:
    """R-RUN-10: they count as no attempt, and end all the same."""
    run = follows(*(AgentResult(outcome.FAILED, "full", failure=agent.CONTEXT_EXHAUSTED) for _ in range(9)))
    run.run(max_attempts=1)
    assert (len(run.calls), run.status()) == (4, {"A": "failed"})
    (question,) = run.state.decisions.values()
    assert str(question["what"]).endswith("failed after 4 attempts")
