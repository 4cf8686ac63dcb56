"""Agents: they do the work of a task and answer with a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from idumb.domain.agent import AgentRequest, AgentResult, Capabilities, Claim
from idumb.domain.plans.plan import Plan, Task

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.proof.evidence import Evidence


class Agent(Protocol):
    """An agent adapter. `continues`: a retry after failed validation may continue from the attempt's own work.

    An attribute `capabilities` may declare more. An adapter of a third party may omit it: use `capabilities`.
    """

    name: str
    version: str
    continues: bool

    def run(self, request: AgentRequest) -> AgentResult: ...

    def describe(self) -> Sequence[str]:
        """What will be run, resolved, for consent: an argument list, or () where nothing is started."""


def capabilities(who: Agent) -> Capabilities:
    """Return what an agent declares, or the defaults."""
    declared: Capabilities = getattr(who, "capabilities", Capabilities())
    return declared


Hear = Callable[[Claim], None]


class ReportingAgent(Agent, Protocol):
    """An agent that reports its progress while it works."""

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        """`hear` is called within it, in its thread, where no signal cuts it short; it raises nothing."""


class DeferredAgent(Agent, Protocol):
    """An agent that may answer after this command has ended."""

    def question(self, request: AgentRequest) -> str:
        """Return a name for the request. It stays the same until the request is answered."""

    def ticket(self) -> str:
        """Return a new, unpredictable ticket. The log keeps it, and every request with the same question carries it."""


class Agents(Protocol):
    def get(self, binding: str) -> Agent:
        """The adapter of a binding of the configuration, or of `steps` and `human`."""

    def forget(self) -> None:
        """Remove what was kept so that agents could go on where they were; nobody is asked again."""


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """What a prompt is made of; `evidence` is of the attempt before, for the validator of this one.

    `template` is the text of a template of the user's; else the one that is shipped under `name`, or for the role.
    `handover` is the summary of an agent whose context was exhausted. `commits`: the builder commits its work itself.
    `decided` are answers of people in this run that hold for every task.
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
    commits: bool = False
    decided: tuple[str, ...] = ()
