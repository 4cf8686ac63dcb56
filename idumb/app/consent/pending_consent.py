"""Unanswered questions about consent, which wait in the user's state directory for `idumb decide`.

A question stores only the hash of what it asks about. `idumb decide` rebuilds the question from the present state, so
any change voids the stored one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from idumb.app.core.services import Services
from idumb.domain.errors import Refusal, Waiting
from idumb.lazy_dataclass import dataclass

MARK = "consent."
YES = "run"


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question about `phase`, or about the agents of `roles` if `phase` is "". `command` continues afterwards."""

    id: str
    command: str
    phase: str = ""
    roles: tuple[str, ...] = ()
    worktree: str = ""
    at: str = ""


def keep(services: Services, refusal: Refusal, question: PendingQuestion) -> Refusal:
    """Store a question. Return the refusal to raise, which names the question if it could be stored."""
    kept = dataclasses.replace(question, worktree=services.worktree, at=services.clock.now())
    try:
        for earlier in all_pending(services):
            if (earlier.phase, earlier.roles, earlier.worktree) == (kept.phase, kept.roles, kept.worktree):
                services.consent.forget_question(earlier.id)
        services.consent.keep_question(kept.id, dataclasses.asdict(kept))
    except OSError:  # the state directory is not writable; the hint names the option that gives consent
        return refusal
    words = f"{refusal.message} To answer it later: idumb decide {kept.id} {YES}"
    return Waiting(refusal.code, words, hint=refusal.hint, details=refusal.details)


def all_pending(services: Services) -> tuple[PendingQuestion, ...]:
    """Every stored question, oldest first. Damaged ones are ignored."""
    questions = (_read(record) for record in services.consent.questions())
    return tuple(sorted((q for q in questions if q is not None), key=lambda q: (q.at, q.id)))


def _read(record: Any) -> PendingQuestion | None:
    names = {f.name for f in dataclasses.fields(PendingQuestion)}
    if not isinstance(record, dict) or not names <= set(record):
        return None
    roles = record["roles"]
    words = {name: record[name] for name in names - {"roles"}}
    if not isinstance(roles, list) or not all(isinstance(word, str) for word in (*roles, *words.values())):
        return None
    return PendingQuestion(**words, roles=tuple(roles))
