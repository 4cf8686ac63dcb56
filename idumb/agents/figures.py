"""Numbers that servers and programs report: an impossible amount is unknown.

A number of thousands of digits is valid JSON; it would spread through every sum and corrupt stored records.
"""

from __future__ import annotations

from typing import Any

from idumb.domain.runs import spending


def count(value: Any) -> int | None:
    """Return a whole number of tokens or the like, from 0 to 10**12."""
    return value if type(value) is int and spending.is_amount(value) else None


def amount(value: Any) -> float | None:
    """Return an amount of money or the like, from 0 to 10**12."""
    return float(value) if spending.is_amount(value) else None


def total(*values: int | None) -> int | None:
    """Return the sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
