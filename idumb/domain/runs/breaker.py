"""The circuit breaker of an agent and its model: after consecutive failures, calls are refused for a while.

    closed --(consecutive failures)--> open --(time is over)--> half-open --(success)--> closed
    half-open --(failure)--> open

Pure: times are the text of the clock port, and the caller stores each new state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from idumb.domain import failures
from idumb.lazy_dataclass import dataclass

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half-open"

FAILURES = 5
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Breaker:
    """`failures` are consecutive; `since` is when it opened or half-opened, "" while it is closed."""

    state: str = CLOSED
    failures: int = 0
    since: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The number of consecutive failures that open it, and for how many seconds."""

    failures: int = FAILURES
    seconds: int = SECONDS


def from_payload(payload: Mapping[str, Any]) -> Breaker:
    return Breaker(payload["state"], payload["failures"], payload["since"], payload["failure"])


def before_call(breaker: Breaker, now: str, rule: Rule) -> tuple[Breaker, float]:
    """Return the new state, and the seconds to wait before the call (0 permits it).

    Half-open permits one call. If its result was never recorded because the process was killed, another call is
    permitted after the same time.
    """
    if breaker.state == CLOSED:
        return breaker, 0.0
    passed = _seconds(breaker.since, now)
    if 0 <= passed < rule.seconds:
        return breaker, rule.seconds - passed
    return replace(breaker, state=HALF_OPEN, since=now), 0.0


def after_call(breaker: Breaker, failure: str | None, now: str, rule: Rule) -> Breaker:
    """Return the state after a call; a failure that does not count shows that the agent can be reached."""
    if not failures.kind(failure).connection:
        return Breaker()
    count = breaker.failures + 1
    if breaker.state == HALF_OPEN or count >= rule.failures:
        return Breaker(OPEN, count, now, failure or "")
    return Breaker(CLOSED, count, "", failure or "")


def _seconds(since: str, now: str) -> float:
    """Return the seconds between two times; negative if the clock was set back."""
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
