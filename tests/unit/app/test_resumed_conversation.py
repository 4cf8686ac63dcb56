"""When a retried builder continues its conversation (R-ADAPT-2)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from idumb.app.attempt import entry
from idumb.domain import agent
from idumb.domain.agent import Capabilities, Conversation
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.runs.run import LockedContract, RunState
from idumb.domain.runs.task_state import NextContext, TaskState
from idumb.domain.settings import Settings
from tests.support.cases import every

ENVELOPE = {"adapter": "claude", "adapter_version": "1", "program": "p", "binding": "coder", "model": "m"}
KNOWN = Conversation("s-1", 1, agent.speaker_digest(ENVELOPE), "k")
TASK = Task("T1-01", "Work")


def resumed(
    *, saved: Conversation | None = KNOWN, resumes: bool = True, mode: str = "guided", run: str = "guided",
    deterministic: bool = False, contract: str = "k", version: str = "1",
) -> Conversation | None:  # fmt: skip
    state = RunState(
        mode=run,
        contract=LockedContract(contract, envelopes={"coder": {**ENVELOPE, "adapter_version": version}}),
    )
    state.tasks = {"T1-01": TaskState("T1-01", "d", context=NextContext(conversation=saved))}
    context: Any = SimpleNamespace(
        journal=SimpleNamespace(state=state),
        plans={"T1-01": Plan("p", "h", "1", "01", "A plan", "Work is done", mode=mode, tasks=(TASK,))},
        deterministic=deterministic,
        services=SimpleNamespace(settings=Settings(builder="coder")),
        agents={"coder": SimpleNamespace(capabilities=Capabilities(resumable=resumes))},
    )
    return entry.resumed_conversation(context, TASK)


def test_the_same_agent_continues_its_conversation_about_the_same_task() -> None:
    assert resumed() == KNOWN


@every(
    "other",
    [
        {"saved": None},
        {"resumes": False},
        {"mode": "strict"},
        {"run": "strict"},
        {"deterministic": True},
        {"contract": "amended"},
        {"version": "2"},
    ],
)
def test_any_difference_starts_a_new_conversation(other: dict[str, Any]) -> None:
    assert resumed(**other) is None
