"""Saved answers: to which later questions a person's answer applies, and to which it never does."""

from __future__ import annotations

from idumb.domain import canonical_json
from idumb.domain.decision import Answer, Decision
from idumb.domain.plans.plan import REVERSIBLE, Task
from idumb.lazy_dataclass import dataclass

FAILURE = "failure"
DECISION = "decision"
KINDS = (FAILURE, DECISION)
"""Only questions after a failure, and choices that a plan offers. Never consent, never a judgement of work, which
would be proof, and never irreversible effects."""


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """`id` identifies the question; `what` is its first wording, `by` the person who answered."""

    id: str
    kind: str
    what: str
    choice: str
    by: str
    at: str
    guidance: str = ""


def question_key(kind: str, choices: tuple[str, ...], wording: str) -> str | None:
    """Return the same key for every question of this kind with these choices; None if its answer cannot be saved.

    A plan's choice is also identified by its wording, because the same letters mean something else in another task.
    """
    if kind not in KINDS:
        return None
    return canonical_json.digest([kind, list(choices), wording if kind == DECISION else ""])[:12]


def key_of_question(question: Decision) -> str | None:
    return question_key(question.kind, tuple(c.id for c in question.choices), question.what)


def may_answer(task: Task) -> bool:
    """Whether a saved answer applies to a task: only if the effects of the task are limited to files."""
    return task.rollback.kind == REVERSIBLE


def answer(saved: SavedAnswer, question: Decision) -> Answer | None:
    if question.choice(saved.choice) is None:
        return None
    return Answer(question.id, saved.choice, f"{saved.by}, remembered", saved.guidance)
