"""The builder that drives idumb instead of being started by it: an agent or a person in the user's editor."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import outcome
from idumb.domain.agent import BUILT_IN, EDITOR, AgentRequest, AgentResult

_FORMAT = "1"


class EditorAgent:
    """Starts nothing: `idumb start` opens the attempt, and `idumb submit` brings in the finished work."""

    name = EDITOR
    version = _FORMAT
    continues = True
    capabilities = BUILT_IN[EDITOR]

    def describe(self) -> Sequence[str]:
        return ()

    def run(self, request: AgentRequest) -> AgentResult:
        return AgentResult(
            outcome.WAITING, f"{request.subject} waits for your editor; to begin, run `idumb start {request.subject}`"
        )
