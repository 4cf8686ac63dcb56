"""Every failure has a class, and an unknown failure is permanent."""

from __future__ import annotations

from idumb.domain import agent, failures, outcome


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
