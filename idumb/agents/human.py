"""Tasks that a person does: the task becomes a decision, and the answer its outcome."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app import ports
from idumb.domain import outcome
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.plan import Task

YES = "yes"
NO = "no"
DONE = "done"
NOT_DONE = "not-done"
REFUSING = frozenset({NO, NOT_DONE})

_FORMAT = "1"


class HumanAgent:
    """Asks at the terminal; without an answer the task waits."""

    name = "human"
    version = _FORMAT
    continues = True

    def __init__(self, asker: ports.Asker | None = None) -> None:
        self._asker = asker

    def describe(self) -> Sequence[str]:
        return ()

    def run(self, request: AgentRequest) -> AgentResult:
        decision = question(request.task, f"{request.task.id}-{request.attempt}")
        answer = self._asker.ask(decision) if self._asker is not None else None
        return answered(decision, answer)


def question(task: Task, decision_id: str) -> Decision:
    """What a person is asked for a task of a human kind."""
    return Decision(
        id=decision_id,
        kind=task.kind,
        what=task.title,
        why=task.description,
        evidence=tuple(line for criterion in task.acceptance for line in (criterion.text, *criterion.instructions)),
        choices=_choices(task),
        task=task.id,
    )


def answered(decision: Decision, answer: Answer | None) -> AgentResult:
    """The outcome that an answer means: what was refused has failed, anything else is done."""
    if answer is None:
        return AgentResult(outcome.WAITING, f"waiting for a person: {decision.what}")
    chosen = decision.choice(answer.choice)
    if chosen is None:
        known = ", ".join(choice.id for choice in decision.choices)
        return AgentResult(outcome.WAITING, f"{answer.choice} is no choice; known are {known}")
    words = f"{answer.by} chose {chosen.id}" + (f": {answer.guidance}" if answer.guidance else "")
    refused = decision.kind != "decision" and chosen.id in REFUSING
    return AgentResult(outcome.FAILED if refused else outcome.COMPLETED, words)


def _choices(task: Task) -> tuple[Choice, ...]:
    if task.kind == "decision":
        return tuple(Choice(option.id, option.text, f"the plan goes on with {option.id}") for option in task.options)
    if task.kind == "human-action":
        return (
            Choice(DONE, "It is done.", "the task is complete and its dependents may run"),
            Choice(NOT_DONE, "It cannot be done.", "the task has failed and its dependents stay blocked"),
        )
    return (
        Choice(YES, "It is as it should be.", "the task is complete and its dependents may run"),
        Choice(NO, "It is not.", "the task has failed and its dependents stay blocked"),
    )
