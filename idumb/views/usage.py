"""What a call of an agent used, in words; what nobody reported is said to be unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.views import quantities

UNKNOWN = "unknown"


def words(usage: Mapping[str, Any] | None) -> str:
    """`1200 tokens in, 300 out, $0.02`."""
    known = usage or {}
    if all(known.get(name) is None for name in ("tokens_in", "tokens_out", "cost_usd")):
        return UNKNOWN
    tokens = f"{count(known.get('tokens_in'))} tokens in, {count(known.get('tokens_out'))} out"
    return f"{tokens}, {money(known.get('cost_usd'))}"


def sum_of(known: float, unknown: int, words_of: str) -> str:
    """A sum with what is missing in it: `1200 and 1 unknown call`, or `unknown` where nobody reported anything."""
    if not unknown:
        return words_of
    return f"{words_of} and {quantities.counted(unknown, 'unknown call')}" if known else UNKNOWN


def count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def money(value: float | None) -> str:
    """Dollars; small amounts with the digits that they need."""
    if value is None:
        return f"cost {UNKNOWN}"
    return f"${value:.2f}" if value >= 0.01 or not value else f"${value:.4f}"
