"""Answers that a person asked to be remembered: to which questions they apply, and to which never."""

from __future__ import annotations

from dataclasses import dataclass

from idumb.domain import canonical_json
from idumb.domain.decision import Answer, Decision
from idumb.domain.plans.plan import REVERSIBLE, Task

FAILURE = "failure"
DECISION = "decision"
KINDS = (FAILURE, DECISION)
"""What happens after a failure, and choices that a plan offers. Never consent, never a judgement of what was made, for
that one is proof; never what cannot be taken back."""


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """`id` names the question; `what` is how it was put first, `by` whose answer it is."""

    id: str
    kind: str
    what: str
    choice: str
    by: str
    at: str
    guidance: str = ""


def question_key(kind: str, choices: tuple[str, ...], what: str) -> str | None:
    """The same for every question of this kind with these choices; None where nothing may be remembered.

    What a plan offers is known by its words too: equal letters mean another thing in another task.
    """
    if kind not in KINDS:
        return None
    return canonical_json.digest([kind, list(choices), what if kind == DECISION else ""])[:12]


def key_of_question(question: Decision) -> str | None:
    return question_key(question.kind, tuple(c.id for c in question.choices), question.what)


def may_answer(task: Task) -> bool:
    """Whether a remembered answer counts for a task: not where its effects are not in files alone."""
    return task.rollback.kind == REVERSIBLE


def answer(known: SavedAnswer, question: Decision) -> Answer | None:
    if question.choice(known.choice) is None:
        return None
    return Answer(question.id, known.choice, f"{known.by}, remembered", known.guidance)
