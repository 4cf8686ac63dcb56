"""What an agent answered is safe for the log and the screen, whatever its adapter left in (R-ADAPT-1)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from idumb.app import calling, session
from idumb.bootstrap import Wired
from idumb.cli.reporters import Silent
from idumb.domain import agent, outcome
from idumb.domain.agent import AgentRequest, AgentResult, StepRecord
from idumb.domain.run import RunState
from idumb.views.ask import Nobody
from tests.support.gitrepo import GitSandbox

TOKEN = "ghp_" + "a1B2" * 9


@dataclass
class Careless:
    """An adapter that passes on what its agent said as it is."""

    name: str
    version: str = "1"
    continues: bool = True

    def run(self, request: AgentRequest) -> AgentResult:
        said = f"{TOKEN} {'x' * 5000}"
        step = StepRecord(0, said, said, {}, ok=True, response="")
        return AgentResult(outcome.COMPLETED, TOKEN, (f"{TOKEN}.txt",), session=said, steps=(step,), model=said)

    def describe(self) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize("adapter", ["steps", "http"])
def test_small_fields_hold_no_secret_and_have_a_longest_size(sandbox: GitSandbox, adapter: str) -> None:
    sandbox.write("kept.txt", "kept")
    sandbox.commit("start")
    services = Wired(str(sandbox.root), Nobody, Silent)
    request = AgentRequest(agent.BUILDER, None, "", str(sandbox.root), ())
    with session.owned(services, "test") as owned:
        made = calling.Call(Careless(adapter), "b", request)
        result = calling.call(services, owned.journal(RunState()), made)
    assert TOKEN not in repr(result)
    assert result.message.startswith("[redacted:")
    assert result.claimed_files[0].endswith(".txt")
    names = (result.session, result.model, result.steps[0].tool)
    assert [len(name or "") for name in names] == [calling.LONGEST_NAME] * 3
    assert len(result.steps[0].intent) == calling.LONGEST_INTENT
