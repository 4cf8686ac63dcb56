"""Agents: they do the work of a task and answer with a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from idumb.domain.agent import AgentRequest, AgentResult, Claim
from idumb.domain.plans.plan import Plan, Task

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.proof.evidence import Evidence


class Agent(Protocol):
    """An agent adapter. `continues`: a retry after failed validation may go on from the attempt's own work.

    An attribute `resumes` may say that a request's `session`, which it named before, is gone on with; `tells` that it
    is a `TellingAgent`; `idle_timeout` how many seconds of silence it is given where the configuration names none.
    """

    name: str
    version: str
    continues: bool

    def run(self, request: AgentRequest) -> AgentResult: ...

    def describe(self) -> Sequence[str]:
        """What will be run, resolved, for consent: an argument list, or () where nothing is started."""


Hear = Callable[[Claim], None]


class TellingAgent(Agent, Protocol):
    """An agent that says where it stands while it works."""

    tells: bool

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        """`hear` is called within it, in its thread, where no signal cuts it short; it raises nothing."""


class AgentElsewhere(Agent, Protocol):
    """An agent that answers later, and so is asked by something that outlives the command."""

    def question(self, request: AgentRequest) -> str:
        """A name for what is asked: the same until it was answered."""

    def ticket(self) -> str:
        """A new one, which nobody can foresee; it is kept in the log, and given with every request of its question."""


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
