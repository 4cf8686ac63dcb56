"""The figures that servers and programs report of themselves: what can be no amount is unknown.

A number of thousands of digits is valid JSON; it would be dragged through every sum, and break what is written down.
"""

from __future__ import annotations

from typing import Any

from idumb.domain.runs import spending


def count(value: Any) -> int | None:
    """A whole number of tokens or the like, from 0 to 10**12."""
    return value if type(value) is int and spending.is_amount(value) else None


def amount(value: Any) -> float | None:
    """Money and the like, from 0 to 10**12."""
    return float(value) if spending.is_amount(value) else None


def total(*values: int | None) -> int | None:
    """The sum of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
