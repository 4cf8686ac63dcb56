"""The circuit breaker of an agent with its model: after some failures in a row nobody asks it for a while.

closed --(so many failures in a row)--> open --(its time is over)--> half-open --(success)--> closed
                                          ^                              |
                                          +------------(failure)---------+

Pure: times are the text of the clock port, and whoever keeps a breaker writes down each new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from idumb.domain.agent import NETWORK, RATE_LIMITED, STALL

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half-open"

FAILURES = 5
SECONDS = 60
COUNTED = frozenset({RATE_LIMITED, NETWORK, STALL})
"""Failures of what lies between idumb and a model; those of the work, and what a person must mend, are not counted."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """`failures` are those in a row; `since` is when it was opened or half-opened, "" while it is closed."""

    state: str = CLOSED
    failures: int = 0
    since: str = ""
    failure: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """How many failures in a row open it, and for how many seconds."""

    failures: int = FAILURES
    seconds: int = SECONDS


def from_payload(payload: Mapping[str, Any]) -> Breaker:
    return Breaker(payload["state"], payload["failures"], payload["since"], payload["failure"])


def before_call(known: Breaker, now: str, rule: Rule) -> tuple[Breaker, float]:
    """(the breaker from now on, seconds to wait until it may be asked; 0 lets the call through).

    Half-open lets one call through. Where nobody wrote down how that ended, for its process was killed, another one
    follows after the same time.
    """
    if known.state == CLOSED:
        return known, 0.0
    passed = _seconds(known.since, now)
    if 0 <= passed < rule.seconds:
        return known, rule.seconds - passed
    return replace(known, state=HALF_OPEN, since=now), 0.0


def after_call(known: Breaker, failure: str | None, now: str, rule: Rule) -> Breaker:
    """The breaker after a call; whatever is not counted shows that the agent can be reached."""
    if failure not in COUNTED:
        return Breaker()
    failures = known.failures + 1
    if known.state == HALF_OPEN or failures >= rule.failures:
        return Breaker(OPEN, failures, now, failure or "")
    return Breaker(CLOSED, failures, "", failure or "")


def _seconds(since: str, now: str) -> float:
    """Negative where the clock was put back."""
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
