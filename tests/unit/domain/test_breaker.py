"""The circuit breaker: closed, open, half-open, and back (R-ADAPT-3)."""

from __future__ import annotations

import dataclasses

from idumb.domain import agent, failures
from idumb.domain.failures import CLOSED, HALF_OPEN, OPEN, Breaker, BreakerRule
from tests.support.cases import every

RULE = BreakerRule(failures=2, seconds=60)


def at(second: int) -> str:
    return f"2026-01-02T03:{4 + second // 60:02}:{second % 60:02}.000000Z"


def test_a_breaker_opens_after_a_number_of_consecutive_failures() -> None:
    """R-ADAPT-3."""
    once = failures.after_call(Breaker(), agent.NETWORK, at(0), RULE)
    assert (once.state, once.failures) == (CLOSED, 1)
    assert failures.before_call(once, at(1), RULE) == (once, 0.0)
    twice = failures.after_call(once, agent.RATE_LIMITED, at(1), RULE)
    assert twice == Breaker(OPEN, 2, at(1), agent.RATE_LIMITED)
    assert failures.before_call(twice, at(21), RULE) == (twice, 40.0)


@every("failure", [None, agent.DECLINED, agent.MALFORMED, agent.MISSING, agent.NOT_LOGGED_IN])
def test_any_answer_proves_that_the_agent_is_reachable(failure: str | None) -> None:
    """R-ADAPT-3."""
    assert failures.after_call(Breaker(CLOSED, 1, "", agent.NETWORK), failure, at(0), RULE) == Breaker()
    assert failures.after_call(Breaker(HALF_OPEN, 2, at(0), agent.NETWORK), failure, at(1), RULE) == Breaker()


def test_after_its_timeout_one_trial_call_decides() -> None:
    """R-ADAPT-3."""
    opened = Breaker(OPEN, 2, at(0), agent.STALL)
    tried, wait = failures.before_call(opened, at(60), RULE)
    assert (tried.state, tried.since, wait) == (HALF_OPEN, at(60), 0.0)
    assert failures.before_call(tried, at(61), RULE) == (tried, 59.0)
    assert failures.after_call(tried, agent.STALL, at(62), RULE) == Breaker(OPEN, 3, at(62), agent.STALL)
    assert failures.after_call(tried, None, at(62), RULE) == Breaker()


def test_a_trial_of_a_killed_process_is_followed_by_another() -> None:
    """R-ADAPT-3: otherwise the agent would never be called again."""
    tried = Breaker(HALF_OPEN, 2, at(0), agent.STALL)
    assert failures.before_call(tried, at(60), RULE) == (Breaker(HALF_OPEN, 2, at(60), agent.STALL), 0.0)


def test_a_clock_set_back_does_not_keep_a_breaker_open() -> None:
    """R-ADAPT-3."""
    assert failures.before_call(Breaker(OPEN, 2, at(120), agent.STALL), at(0), RULE)[1] == 0.0


def test_a_breaker_is_unchanged_after_it_was_stored() -> None:
    """R-ADAPT-3."""
    opened = Breaker(OPEN, 2, at(0), agent.STALL)
    assert Breaker.recorded({"key": "x", **dataclasses.asdict(opened)}) == opened
