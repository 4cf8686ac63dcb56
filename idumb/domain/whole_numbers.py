"""Whole numbers in untrusted text. Python converts at most 4,300 digits to a number, or back.

Numbers that count, such as limits and timeouts, have at most 18 digits. Numbers that only name, such as ids, are not
converted if they are longer.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_DIGITS = 4300
"""The most digits of a number in a plan, even if it is only part of a name."""
_COUNTED = 18
LARGEST: int = 10**_COUNTED - 1


def parse(digits: str) -> int | None:
    """Return the number, or None if it exceeds 18 digits."""
    bare = digits.lstrip("0") or "0"
    return int(bare) if len(bare) <= _COUNTED else None


def sort_key(digits: str) -> tuple[int, str]:
    """Return a key that sorts digit strings as numbers, whatever their length; equal for equal numbers."""
    bare = digits.lstrip("0")
    return len(bare), bare


def next_free(all_digits: Iterable[str]) -> int:
    """Return an unused number: the one after the greatest that is counted."""
    numbers = (parse(digits) for digits in all_digits)
    return min(max((number for number in numbers if number is not None), default=0), LARGEST - 1) + 1


def parse_json_int(text: str) -> int:
    """`parse_int` for a JSON reader. Raises ValueError if there are too many digits."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits; the limit is {MOST_DIGITS:,}")
    return int(text)
