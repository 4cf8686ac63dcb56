"""Saved answers: to which later questions a person's answer applies, and to which it never does."""

from __future__ import annotations

from idumb.domain import canonical_json
from idumb.domain.decision import Decision
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


def key(question: Decision) -> str | None:
    """Return the same key for every such question with these choices; None if its answer cannot be saved.

    A plan's choice is also identified by its wording, because the same letters mean something else in another task.
    """
    kind, choices = question.subject, [choice.id for choice in question.choices]
    if kind not in KINDS:
        return None
    return canonical_json.digest([kind, choices, question.what if kind == DECISION else ""])[:12]
