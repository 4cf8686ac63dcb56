"""Names in a row, as a sentence or a line has room for them."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 5


def listed(items: Iterable[str], most: int = MOST, *, hidden: int = 0, between: str = ", ") -> str:
    """`a, b, c and 4 more`. `hidden` counts items that are not among `items` and stay unnamed."""
    found = list(items)
    rest = max(0, len(found) - most) + hidden
    return between.join(found[:most]) + (f" and {rest} more" if rest else "")
