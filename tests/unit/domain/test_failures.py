"""Every failure leads to a next action."""

from __future__ import annotations

from idumb.domain import agent, outcome
from idumb.domain.failures import Failure, remedies
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
    failure = Failure(
        "1",
        "T1-01",
        outcome.FAILED,
        checks=[("AC-1", "make test"), ("ledger", None)],
        deviations=["b.txt"],
    )
    expected = commands(failure)
    assert expected[:2] == ["idumb show T1-01 --diff", "idumb amend 1 --accept-deviation T1-01 b.txt"]
    assert "make test" in expected
    assert len(remedies(failure)) == len(set(remedies(failure)))


def test_an_unknown_failure_still_has_next_actions() -> None:
    assert commands(Failure("1", "T1-01", None))[:2] == ["idumb show T1-01 --diff", "idumb dlq retry T1-01"]
