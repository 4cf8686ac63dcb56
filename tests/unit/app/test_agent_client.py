"""Agent answers are safe for the log and the screen, whatever the adapter left in (R-ADAPT-1)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from idumb.app.attempt import agent_client
from idumb.app.ports.agents import Hear
from idumb.app.session import operation
from idumb.cli.opened_services import Silent
from idumb.composition.container import Container
from idumb.domain import agent, outcome
from idumb.domain.agent import AgentRequest, AgentResult, Capabilities, Claim, StepRecord
from idumb.domain.errors import StoreError
from idumb.domain.plans import plan
from idumb.domain.runs.run import RunState
from idumb.views.terminal.ask import Nobody
from tests.support import run_events
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
