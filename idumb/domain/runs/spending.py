"""What runs used, and the ceilings for it. Usage that an agent does not report counts as unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple

from idumb.domain.agent import Usage
from idumb.domain.settings import Ceiling

FREE = frozenset({"steps", "human"})
"""Adapters that use nothing, so that they have nothing to report."""

_MOST = 10**12  # more than any call can use


class Spent(Struct, frozen=True):
    """Times in seconds, money in US dollars. `unknown_*` count calls whose agents did not report."""

    attempts: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0
    unknown_tokens: int = 0
    unknown_cost: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(round(a + b, 9) for a, b in zip(astuple(self), astuple(other), strict=True)))


def spent_by_call(usage: Mapping[str, Any] | None, *, reports: bool = True) -> Spent:
    """Return what one call used, from the usage in an event; `reports` is False for adapters that use nothing."""
    if not reports:
        return Spent()
    reported = usage or {}
    tokens: list[int] = [reported[name] for name in ("tokens_in", "tokens_out") if is_amount(reported.get(name))]
    money = reported.get("cost_usd") if is_amount(reported.get("cost_usd")) else None
    return Spent(
        tokens=sum(tokens), cost_usd=money or 0.0, unknown_tokens=int(not tokens), unknown_cost=int(money is None)
    )


def is_amount(value: Any) -> bool:
    """Whether a value is a plausible amount. A negative or non-numeric value would bypass a ceiling."""
    return type(value) in {int, float} and 0 <= value <= _MOST


def plausible(usage: Usage) -> Usage:
    """Return the usage without implausible amounts, which become unknown."""
    return Usage(*(value if is_amount(value) else None for value in astuple(usage)))


def charge(accounts: dict[str, Spent], role: str, used: Spent) -> None:
    """Add to what a role used."""
    accounts[role] = accounts.get(role, Spent()) + used


def total(parts: Iterable[Spent]) -> Spent:
    return sum(parts, Spent())


def add_usage(first: Usage, second: Usage) -> Usage:
    """Add the usage of two calls; unknown only if both are."""
    pairs: Iterable[tuple[Any, Any]] = zip(astuple(first), astuple(second), strict=True)
    return Usage(*(b if a is None else a if b is None else a + b for a, b in pairs))


class CeilingReached(Struct, frozen=True):
    """A ceiling that one more call would pass; `scope` is `task`, `run` or a role. `words` states both amounts.

    `name` is that of the setting below the scope, `most` its amount.
    """

    scope: str
    words: str
    name: str
    most: float


def raise_ceiling(ceiling: Ceiling, times: int) -> Ceiling:
    """Return a ceiling that a person raised `times` times, each time by its own amount."""
    amounts: list[Any] = [None if value is None else value * (1 + times) for value in astuple(ceiling)]
    return Ceiling(*amounts)


def reached_ceiling(scope: str, ceiling: Ceiling, spent: Spent) -> CeilingReached | None:
    """Return the first ceiling that permits no further call, or None."""
    rows: tuple[tuple[str, float | None, float, str, str], ...] = (
        ("attempts", ceiling.attempts, spent.attempts, "{:.0f} attempts", "{:.0f}"),
        ("time", ceiling.seconds, spent.seconds, "{:.0f} s", "{:.0f} s"),
        ("tokens", ceiling.tokens, spent.tokens, f"{{:.0f}} tokens{_unknown(spent.unknown_tokens)}", "{:.0f}"),
        ("cost_usd", ceiling.cost_usd, spent.cost_usd, f"${{:.2f}}{_unknown(spent.unknown_cost)}", "${:.2f}"),
    )
    for name, most, used, words, limit in rows:
        if most is not None and used >= most:
            return CeilingReached(scope, f"{words.format(used)} of {limit.format(most)} used", name, most)
    return None


def is_blind(ceiling: Ceiling, spent: Spent) -> bool:
    """Whether agents did not report what a ceiling limits, so that it can be passed unnoticed."""
    tokens = ceiling.tokens is not None and spent.unknown_tokens > 0
    return tokens or (ceiling.cost_usd is not None and spent.unknown_cost > 0)


def remaining(ceiling: Ceiling, spent: Spent) -> Ceiling:
    """Return what remains, at least zero; only money has decimals."""
    rest = {name: most - getattr(spent, name) for name, most in asdict(ceiling).items() if most is not None}
    return Ceiling(**{name: max(0, round(left, 9) if name == "cost_usd" else int(left)) for name, left in rest.items()})


def lowest(ceilings: Iterable[Ceiling]) -> Ceiling:
    """Return the lowest of each ceiling."""
    amounts: Iterable[tuple[Any, ...]] = zip(*map(astuple, ceilings), strict=True)
    return Ceiling(*(min((value for value in values if value is not None), default=None) for values in amounts))


def _unknown(calls: int) -> str:
    return f" (plus {calls} call{'s' * (calls != 1)} without a report)" if calls else ""
