"""Format durations, counts, object ids, times, and the usage of agents; shorten text to a width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idumb.domain.runs.spending import Spent


def duration(seconds: float) -> str:
    """`<0.1s`, `0.8s`, `45s`, `1m05s`, `2h03m`."""
    if 0 < seconds < 0.05:
        return "<0.1s"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def short(object_id: str | None) -> str:
    """Return the first seven digits of a commit, or `none`."""
    return object_id[:7] if object_id else "none"


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def moment(at: str) -> str:
    """Return an ISO time as `2026-01-02 03:04:05 UTC`; any other text unchanged."""
    return f"{at[:10]} {at[11:19]} UTC" if len(at) >= 20 and at[10] == "T" and at.endswith("Z") else at


def line_counts(added: int | None, removed: int | None) -> str:
    """Return `+3 -1`, or `binary` without counts."""
    return "binary" if added is None or removed is None else f"+{added} -{removed}"


UNKNOWN = "unknown"


def usage(usage: Mapping[str, Any] | None) -> str:
    """`1200 tokens in, 300 out, $0.02`."""
    reported = usage or {}
    if all(reported.get(name) is None for name in ("tokens_in", "tokens_out", "cost_usd")):
        return UNKNOWN
    tokens = f"{count(reported.get('tokens_in'))} tokens in, {count(reported.get('tokens_out'))} out"
    return f"{tokens}, {money(reported.get('cost_usd'))}"


def sum_of(reported: float, unknown: int, words_of: str) -> str:
    """Return a sum with its unknown part: `1200 and 1 unknown call`, or `unknown` without any report."""
    if not unknown:
        return words_of
    return f"{words_of} and {counted(unknown, 'unknown call')}" if reported else UNKNOWN


def spent(sums: Spent) -> Mapping[str, str]:
    """Return the tokens and the cost of agents, with their unknown parts."""
    return {
        "tokens": sum_of(sums.tokens, sums.unknown_tokens, str(sums.tokens)),
        "cost": sum_of(sums.cost_usd, sums.unknown_cost, money(sums.cost_usd)),
    }


def count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def money(value: float | None) -> str:
    """Return dollars; amounts below a cent have four decimals."""
    if value is None:
        return f"cost {UNKNOWN}"
    return f"${value:.2f}" if value >= 0.01 or not value else f"${value:.4f}"
