"""What killed commands left in checkouts: it is kept before anything else happens there, and `doctor` names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from idumb.app.core.services import Services
from idumb.domain import errors, health
from idumb.domain.health import Check, Symptom


def checks(services: Services, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """`owned` returns whether a working tree of the repository has a live owner, whose checkout is in use."""

    def place() -> Iterator[Symptom]:
        try:
            services.checkouts.require_place()
        except errors.Refusal as refusal:
            means = "no program can work, and nothing can be run dry"
            yield health.warn(refusal.message, means=means, fix=refusal.hint or "")
            return
        yield health.passed(services.checkouts.place())

    def left() -> Iterator[Symptom]:
        at_work = owned()
        for path in services.checkouts.left():
            yield health.warn(
                "an attempt works in a checkout",
                path,
                means="a run is under way" if at_work else "it was killed, and this may be the only copy of its work",
                fix="idumb status",
                fixes=not at_work,
                subject=path,
            )

    def keep(symptom: Symptom) -> str:
        """Keep the files of killed attempts under their names."""
        where = services.checkouts.keep_left().get(symptom.subject)
        return f"what it left is kept: {where}" if where else f"{symptom.subject} is in use, or kept by now"

    return (
        Check("checkouts.place", "programs have a place to work", place),
        Check("checkouts.left", "no work of a killed attempt is in a checkout alone", left, keep),
    )
