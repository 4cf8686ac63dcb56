"""Usage, its ceilings, and unknown amounts (R-ADAPT-3)."""

from __future__ import annotations

from typing import Any

from idumb.domain.agent import FAILURES, Usage
from idumb.domain.failures import KINDS, failure_message
from idumb.domain.runs import spending
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import Binding, Ceiling, Settings
from tests.support.cases import every


def test_unreported_usage_counts_as_unknown() -> None:
    """R-ADAPT-3."""
    assert spending.spent_by_call({"tokens_in": 5, "tokens_out": None, "cost_usd": None}) == Spent(
        tokens=5, unknown_cost=1
    )
    assert spending.spent_by_call(None) == Spent(unknown_tokens=1, unknown_cost=1)
    assert spending.spent_by_call(None, reports=False) == Spent()
    one, other = Spent(1, 2.5, 10, 0.1, 1, 0), Spent(1, 1.5, 5, 0.2, 0, 1)
    assert spending.total([one, other]) == Spent(2, 4.0, 15, 0.3, 1, 1)


@every("amount", [-1, -0.5, float("nan"), float("inf"), 10**400, True, "5", [5]])
def test_impossible_usage_counts_as_unknown(amount: Any) -> None:
    """R-ADAPT-3: an agent cannot raise a ceiling by its report."""
    usage = {"tokens_in": amount, "tokens_out": amount, "cost_usd": amount}
    assert spending.spent_by_call(usage) == Spent(unknown_tokens=1, unknown_cost=1)
    assert spending.spent_by_call({**usage, "tokens_in": 7}) == Spent(tokens=7, unknown_cost=1)


def test_the_sum_of_two_calls_is_unknown_only_if_both_are() -> None:
    """R-ADAPT-3."""
    assert spending.add_usage(Usage(1, None, 0.5), Usage(2, None, None)) == Usage(3, None, 0.5)


@every(
    "ceiling, words",
    [
        (Ceiling(attempts=2), "2 attempts of 2 used"),
        (Ceiling(seconds=60), "60 s of 60 s used"),
        (Ceiling(tokens=100), "120 tokens (plus 1 call without a report) of 100 used"),
        (Ceiling(cost_usd=1.5), "$1.50 of $1.50 used"),
    ],
)
def test_an_exhausted_ceiling_names_its_limit(ceiling: Ceiling, words: str) -> None:
    """R-ADAPT-3."""
    reached = spending.reached_ceiling("task", ceiling, Spent(2, 60.0, 120, 1.5, 1, 0))
    assert reached is not None
    assert (reached.scope, reached.words) == ("task", words)
    assert spending.reached_ceiling("task", spending.raise_ceiling(ceiling, 1), Spent(2, 60.0, 120, 1.5)) is None


def test_a_ceiling_on_unreported_usage_has_no_effect() -> None:
    """R-ADAPT-3."""
    assert spending.is_blind(Ceiling(cost_usd=1.0), Spent(unknown_cost=1))
    assert spending.is_blind(Ceiling(tokens=1), Spent(unknown_tokens=1))
    assert not spending.is_blind(Ceiling(attempts=1, seconds=1), Spent(unknown_tokens=1, unknown_cost=1))


def test_the_remainder_is_the_least_of_all_ceilings() -> None:
    """R-ADAPT-3."""
    parts = [spending.remaining(Ceiling(tokens=10, cost_usd=1.0), Spent(tokens=4)), Ceiling(tokens=20, seconds=5)]
    assert spending.lowest(parts) == Ceiling(None, 5, 6, 1.0)
    assert spending.remaining(Ceiling(1, 1, 1, 1.0), Spent(9, 9.0, 9, 9.0)) == Ceiling(0, 0, 0, 0.0)
    assert spending.lowest([]) == Ceiling()


def test_every_failure_has_a_next_step() -> None:
    """R-ADAPT-3."""
    assert set(FAILURES) <= KINDS.keys()
    for kind in FAILURES:
        message = failure_message(kind, "coder", "claude", "its own words.", "idumb resume 1")
        assert message.message.startswith("coder ")
        assert message.message.endswith(": its own words")
        assert message.next_step.endswith("idumb resume 1")
        assert "$" not in message.next_step
    assert "npm install -g @anthropic-ai/claude-code" in failure_message("missing", "c", "claude", "", "x").next_step
    assert "Install mytool" in failure_message("missing", "c", "mytool", "", "x").next_step
    bindings = {"c": Binding("c", "claude"), "d": Binding("d", "acp", ("/opt/mytool", "--acp"))}
    assert [Settings(bindings=bindings).program_of(name) for name in "cdx"] == ["claude", "mytool", "x"]
    assert "codex login" in failure_message("not-logged-in", "c", "codex", "", "x").next_step
