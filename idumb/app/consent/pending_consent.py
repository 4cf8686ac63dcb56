"""Questions about consent that nobody could be asked: they wait in the user's state directory for `idumb decide`.

Only what was asked about is kept, by its hash. What a person is shown, and agrees to, is made anew from what is there
when they look: after any change the question is another one, and this one is void.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from idumb.app.core.services import Services
from idumb.domain.errors import Refusal, Waiting

MARK = "consent."
YES = "run"


@dataclass(frozen=True, slots=True)
class Asked:
    """`phase` is the one that is to run, "" where only the agents of `roles` are to be asked. `command` goes on."""

    id: str
    command: str
    phase: str = ""
    roles: tuple[str, ...] = ()
    worktree: str = ""
    at: str = ""


def keep(services: Services, refusal: Refusal, asked: Asked) -> Refusal:
    """The refusal to raise: one that says where the question waits, if it could be kept."""
    kept = dataclasses.replace(asked, worktree=services.worktree, at=services.clock.now())
    try:
        for earlier in known(services):
            if (earlier.phase, earlier.roles, earlier.worktree) == (kept.phase, kept.roles, kept.worktree):
                services.consent.forget_question(earlier.id)
        services.consent.keep_question(kept.id, dataclasses.asdict(kept))
    except OSError:  # a state directory that cannot be written: consent is given by the flag that the hint names
        return refusal
    words = f"{refusal.message} The question waits: idumb decide {kept.id} {YES}"
    return Waiting(refusal.code, words, hint=refusal.hint, details=refusal.details)


def known(services: Services) -> tuple[Asked, ...]:
    """Every question that was kept, the oldest first; those that are damaged count for nothing."""
    found = (_read(record) for record in services.consent.questions())
    return tuple(sorted((one for one in found if one is not None), key=lambda one: (one.at, one.id)))


def _read(record: Any) -> Asked | None:
    names = {f.name for f in dataclasses.fields(Asked)}
    if not isinstance(record, dict) or not names <= set(record):
        return None
    roles = record["roles"]
    words = {name: record[name] for name in names - {"roles"}}
    if not isinstance(roles, list) or not all(isinstance(one, str) for one in (*roles, *words.values())):
        return None
    return Asked(**words, roles=tuple(roles))
