"""Agents that need no program: a person answers a question, or works in an editor that drives idumb."""

from __future__ import annotations

from idumb.agents.adapter import Adapter
from idumb.domain import outcome
from idumb.domain.action import REFUSE
from idumb.domain.agent import BUILT_IN, EDITOR, HUMAN, AgentRequest, AgentResult


class HumanAgent(Adapter):
    """Waits for the answer to the question of the request; `idumb` asks it, and the request carries the answer then."""

    name = HUMAN
    capabilities = BUILT_IN[HUMAN]

    def run(self, request: AgentRequest) -> AgentResult:
        """Return the outcome of the answer: a refused choice fails, any other completes."""
        question, answer = request.question, request.answer
        if question is None:
            return AgentResult(outcome.ERRORED, f"{request.subject} has no question for a person")
        if answer is None:
            return AgentResult(outcome.WAITING, f"waiting for a decision: {question.what}")
        chosen = question.choice(answer.choice)
        if chosen is None:
            options = ", ".join(choice.id for choice in question.choices)
            return AgentResult(outcome.WAITING, f"{answer.choice} is not an option; choose one of: {options}")
        words = f"{answer.by} chose {chosen.id}" + (f": {answer.guidance}" if answer.guidance else "")
        return AgentResult(outcome.FAILED if chosen.move == REFUSE else outcome.COMPLETED, words, answer=answer)


class EditorAgent(Adapter):
    """Waits: `idumb start` opens the attempt, and `idumb submit` brings in the finished work."""

    name = EDITOR
    capabilities = BUILT_IN[EDITOR]

    def run(self, request: AgentRequest) -> AgentResult:
        return AgentResult(
            outcome.WAITING, f"{request.subject} waits for your editor; to begin, run `idumb start {request.subject}`"
        )
