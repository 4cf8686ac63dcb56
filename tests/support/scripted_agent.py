"""An agent that runs a Python callable and records its requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from idumb.domain import outcome
from idumb.domain.agent import AgentRequest, AgentResult

Work = Callable[[AgentRequest], AgentResult | None]


def nothing(_: AgentRequest) -> None:
    """Work that changes nothing."""


class ScriptedAgent:
    """Implements `Agent`. Work that gives None has completed; work that raises OSError has failed."""

    name = "scripted"
    version = "1"
    continues = False

    def __init__(self, work: Work = nothing) -> None:
        self._work = work
        self.requests: list[AgentRequest] = []

    def describe(self) -> Sequence[str]:
        return ()

    def run(self, request: AgentRequest) -> AgentResult:
        self.requests.append(request)
        try:
            return self._work(request) or AgentResult(outcome.COMPLETED)
        except OSError as problem:
            return AgentResult(outcome.FAILED, str(problem))
