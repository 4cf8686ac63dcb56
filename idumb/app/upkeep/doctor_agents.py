"""The check of `idumb doctor` on circuit breakers: which agent is not asked for now, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from idumb.app.attempt import agent_client
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.domain import health
from idumb.domain.errors import InputError
from idumb.domain.health import Check, Symptom
from idumb.domain.runs import breaker
from idumb.domain.runs.breaker import Breaker, Rule
from idumb.domain.runs.run import RunState


def checks(services: Services) -> tuple[Check, ...]:
    look = _Look(services)
    # It takes the right to write itself: only then is anything to be recorded.
    return (Check("agents.breakers", "every agent may be asked", look.breakers, look.close, alone=True),)


@dataclass(frozen=True, slots=True)
class _Look:
    services: Services

    def breakers(self) -> Iterator[Symptom]:
        """A warning for each that holds calls back; the others together."""
        rule, now = _rule(self.services), self.services.clock.now()
        free = []
        for key, known in agent_client.breakers(self.services).items():
            wait = breaker.asked(known, now, rule)[1]
            if wait:
                yield _holding(key, known, datetime.fromisoformat(now) + timedelta(seconds=wait))
            elif known != Breaker():
                free.append(f"{_words(key, known)}; it may be asked")
        yield health.fine("; ".join(free) if free else "no circuit breaker is open")

    def close(self, symptom: Symptom) -> str:
        """Refusal while somebody else owns the work tree."""
        with operation.owned(self.services, "doctor") as owned:
            journal = owned.journal(RunState())
            journal.write(journal.event("breaker.changed", key=symptom.subject, **Breaker().as_dict()))
        return f"the circuit breaker of {symptom.subject} is closed; it is asked again at once"


def _holding(key: str, known: Breaker, until: datetime) -> Symptom:
    when = f"{until:%Y-%m-%d %H:%M:%S} UTC"
    return health.warn(
        _words(key, known),
        means=f"nobody asks it before {when}; then one call is let through, and decides",
        mends=True,
        subject=key,
    )


def _words(key: str, known: Breaker) -> str:
    """`key` is adapter, binding and model."""
    since = f" since {known.since}" if known.since else ""
    calls = f"{known.failures} call{'s' * (known.failures != 1)} in a row failed, the last by {known.failure}"
    return f"{key}: {known.state}{since}, {calls}"


def _rule(services: Services) -> Rule:
    """Doctor looks also where the configuration cannot be read; another check tells of that."""
    try:
        return agent_client.rule(services.settings)
    except InputError:
        return Rule()
