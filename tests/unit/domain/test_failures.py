"""Failures: their class, what fixes them, and the circuit breaker that opens after several (R-ADAPT-3)."""

from __future__ import annotations

from msgspec.structs import asdict

from idumb.domain import agent, failures, outcome
from idumb.domain.failures import CLOSED, HALF_OPEN, OPEN, Breaker, BreakerRule, Failure, remedies
from tests.support.cases import every


def commands(failure: Failure) -> list[str]:
    return [str(command) for _, command in remedies(failure) if command]


@every("kind", agent.FAILURES)
def test_every_kind_of_agent_failure_has_its_own_text(kind: str) -> None:
    """R-ADAPT-6."""
    plain = remedies(Failure("1", "T1-01", outcome.ERRORED))
    remedies_of_kind = remedies(Failure("1", "T1-01", outcome.ERRORED, failure=kind))
    assert remedies_of_kind[0] not in plain
    assert remedies_of_kind[0][0].endswith(".")


def test_a_failure_is_named_with_the_command_that_shows_it() -> None:
    """R-ADAPT-6."""
    checks = [("AC-1", "make test"), ("ledger", None)]
    failure = Failure("1", "T1-01", outcome.FAILED, checks=checks, deviations=["b.txt"])
    expected = commands(failure)
    assert expected[:2] == ["idumb show T1-01 --diff", "idumb amend 1 --accept-deviation T1-01 b.txt"]
    assert "make test" in expected
    assert len(remedies(failure)) == len(set(remedies(failure)))
    of_workflow = Failure("W1", "TW1-01", outcome.FAILED, deviations=["b.txt"])
    assert "idumb amend W1 --from-file" in commands(of_workflow)


def test_an_unknown_failure_still_has_next_actions() -> None:
    assert commands(Failure("1", "T1-01", None))[:2] == ["idumb show T1-01 --diff", "idumb dlq retry T1-01"]


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
    assert Breaker.recorded({"key": "x", **asdict(opened)}) == opened


def test_a_failure_has_its_class() -> None:
    """R-HAND-3."""
    cases: list[tuple[str | None, str | None, str | None, str]] = [
        (outcome.FAILED, None, None, failures.PERMANENT),
        (outcome.REFUSED, None, None, failures.PERMANENT),
        (None, None, None, failures.PERMANENT),
        (outcome.TIMED_OUT, None, None, failures.TRANSIENT),
        (outcome.ERRORED, None, None, failures.SYSTEM),
        (outcome.ERRORED, None, agent.RATE_LIMITED, failures.TRANSIENT),
        (outcome.ERRORED, None, agent.NOT_LOGGED_IN, failures.SYSTEM),
        (outcome.ERRORED, None, agent.MALFORMED, failures.PERMANENT),
        (outcome.TIMED_OUT, "resources", None, failures.SYSTEM),
        (outcome.FAILED, "external", None, failures.TRANSIENT),
        (outcome.FAILED, "deadlock", "new-kind", failures.PERMANENT),
    ]
    assert not [
        (ended, cause, failure, expected)
        for ended, cause, failure, expected in cases
        if failures.class_of(ended, cause, failure) != expected
    ]


def test_every_kind_of_failure_of_agents_has_a_class() -> None:
    """R-HAND-3."""
    assert {failures.class_of(outcome.ERRORED, None, f) for f in agent.FAILURES} == set(failures.CLASSES)
