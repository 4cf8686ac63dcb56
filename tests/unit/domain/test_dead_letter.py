"""Every failure has a class, and an unknown failure is permanent."""

from __future__ import annotations

from idumb.domain import agent, outcome
from idumb.domain.runs import dead_letter


def test_a_failure_has_its_class() -> None:
    """R-HAND-3."""
    cases: list[tuple[str | None, str | None, str | None, str]] = [
        (outcome.FAILED, None, None, dead_letter.PERMANENT),
        (outcome.REFUSED, None, None, dead_letter.PERMANENT),
        (None, None, None, dead_letter.PERMANENT),
        (outcome.TIMED_OUT, None, None, dead_letter.TRANSIENT),
        (outcome.ERRORED, None, None, dead_letter.SYSTEM),
        (outcome.ERRORED, None, agent.RATE_LIMITED, dead_letter.TRANSIENT),
        (outcome.ERRORED, None, agent.NOT_LOGGED_IN, dead_letter.SYSTEM),
        (outcome.ERRORED, None, agent.MALFORMED, dead_letter.PERMANENT),
        (outcome.TIMED_OUT, "resources", None, dead_letter.SYSTEM),
        (outcome.FAILED, "external", None, dead_letter.TRANSIENT),
        (outcome.FAILED, "deadlock", "new-kind", dead_letter.PERMANENT),
    ]
    assert not [
        (ended, cause, failure, expected)
        for ended, cause, failure, expected in cases
        if dead_letter.failure_class(ended, cause, failure) != expected
    ]


def test_every_kind_of_failure_of_agents_has_a_class() -> None:
    """R-HAND-3."""
    assert {dead_letter.failure_class(outcome.ERRORED, None, f) for f in agent.FAILURES} == set(dead_letter.CLASSES)


def test_a_run_has_the_class_that_is_hardest_to_fix() -> None:
    assert dead_letter.run_class([]) == dead_letter.SYSTEM
    assert dead_letter.run_class([dead_letter.TRANSIENT]) == dead_letter.TRANSIENT
    assert dead_letter.run_class([dead_letter.TRANSIENT, dead_letter.PERMANENT]) == dead_letter.PERMANENT
