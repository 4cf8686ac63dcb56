"""Agents, which do the work of a task and answer with a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from idumb.domain.agent import AgentRequest, AgentResult, Claim
from idumb.domain.plans.plan import Plan, Task
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.proof.evidence import Evidence


class Agent(Protocol):
    """An agent adapter. `continues`: a retry after failed validation may continue from the attempt's own work.

    An attribute `capabilities` may declare more. An adapter of a third party may omit it: `agent.capabilities`.
    """

    name: str
    version: str
    continues: bool

    def run(self, request: AgentRequest) -> AgentResult: ...

    def describe(self) -> Sequence[str]:
        """The resolved argument list that `run` will start, for consent; () if it starts no program."""


Hear = Callable[[Claim], None]


class ReportingAgent(Agent, Protocol):
    """An agent that reports its progress while it works."""

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        """Call `hear` with each progress report, in this thread. `hear` raises nothing, and no signal interrupts it."""


class DeferredAgent(Agent, Protocol):
    """An agent that may answer after this command has ended."""

    def question(self, request: AgentRequest) -> str:
        """Return a name for the request. It stays the same until the request is answered."""

    def ticket(self) -> str:
        """Return a new, unpredictable ticket. The log keeps it, and every request with the same question carries it."""


class Agents(Protocol):
    def get(self, binding: str) -> Agent:
        """The adapter of a configured binding, or of `steps` or `human`."""


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The input of a prompt. For a validator, `evidence` is that of the attempt.

    `template` is the text of the user's template; None selects the shipped one, by `name` or role. `handover` is the
    summary of an agent whose context was exhausted. `decided` are the answers of this run that apply to every task.
    `values` are the inputs of a workflow's step, and the answer it asks for, in words. `requirements` are those that
    the task serves, with their texts.
    """

    role: str
    task: Task
    plan: Plan
    protected: tuple[str, ...]
    feedback: str
    attempt: int
    evidence: tuple[Evidence, ...] = ()
    diff: str = ""
    template: str | None = None
    name: str = ""
    handover: str = ""
    decided: tuple[str, ...] = ()
    values: str = ""
    requirements: tuple[str, ...] = ()
