"""A decision: a question to a person with the evidence, the choices, and the consequence of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """`command` is what a user without a terminal types to choose it; None where there is none."""

    id: str
    text: str
    consequence: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """`kind`: one of those that `docs/schemas/decision.json` lists, or consent, approval, undo, halt, plan."""

    id: str
    kind: str
    what: str
    why: str
    evidence: tuple[str, ...]
    choices: tuple[Choice, ...]
    task: str | None = None

    def choice(self, choice_id: str) -> Choice | None:
        return next((c for c in self.choices if c.id == choice_id), None)


@dataclass(frozen=True, slots=True)
class Answer:
    decision: str
    choice: str
    by: str
    guidance: str = ""
