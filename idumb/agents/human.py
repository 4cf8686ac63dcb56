"""Work done by a person: the adapter asks the request's question and turns the answer into the outcome."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app.ports.ui import Asker
from idumb.domain import outcome
from idumb.domain.agent import BUILT_IN, HUMAN, AgentRequest, AgentResult
from idumb.domain.decision import Answer, Decision

REFUSING = frozenset({"no", "not-done"})

_FORMAT = "1"


class HumanAgent:
    """Asks at the terminal; without one the task waits. A request may carry an answer given earlier."""

    name = HUMAN
    version = _FORMAT
    continues = True
    capabilities = BUILT_IN[HUMAN]

    def __init__(self, asker: Asker | None = None) -> None:
        self._asker = asker

    def describe(self) -> Sequence[str]:
        return ()

    def run(self, request: AgentRequest) -> AgentResult:
        if request.question is None:
            return AgentResult(outcome.ERRORED, f"{request.subject} has no question for a person")
        answer = request.answer
        if answer is None and self._asker is not None:
            answer = self._asker.ask(request.question)
        return answered(request.question, answer)


def answered(decision: Decision, answer: Answer | None) -> AgentResult:
    """Return the outcome of an answer: a refused choice fails, any other completes."""
    if answer is None:
        return AgentResult(outcome.WAITING, f"waiting for a decision: {decision.what}")
    chosen = decision.choice(answer.choice)
    if chosen is None:
        known = ", ".join(choice.id for choice in decision.choices)
        return AgentResult(outcome.WAITING, f"{answer.choice} is not an option; choose one of: {known}")
    words = f"{answer.by} chose {chosen.id}" + (f": {answer.guidance}" if answer.guidance else "")
    refused = decision.kind != "decision" and chosen.id in REFUSING
    return AgentResult(outcome.FAILED if refused else outcome.COMPLETED, words, answer=answer)
