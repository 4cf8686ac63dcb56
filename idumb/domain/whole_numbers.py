"""Whole numbers that anybody may have written: Python converts no more than 4,300 digits to a number, or back.

What counts, such as a limit or a timeout, has at most 18 digits. What only names, such as an id, is never converted
where it is longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_DIGITS = 4300
"""Of a number in a plan, even of one that only names."""
_COUNTED = 18
LARGEST: int = 10**_COUNTED - 1


def parse(digits: str) -> int | None:
    """The number that decimal digits write; None where it is larger than anything that is counted."""
    bare = digits.lstrip("0") or "0"
    return int(bare) if len(bare) <= _COUNTED else None


def sort_key(digits: str) -> tuple[int, int, str]:
    """A key that sorts digits as the numbers that they write, however many there are; equal for equal numbers."""
    number = parse(digits)
    bare = digits.lstrip("0")
    return (0, number, "") if number is not None else (len(bare), 0, bare)


def next_free(all_digits: Iterable[str]) -> int:
    """A number that none of them writes: the one behind the greatest that is counted."""
    known = (parse(digits) for digits in all_digits)
    return min(max((number for number in known if number is not None), default=0), LARGEST - 1) + 1


def too_long(text: str) -> bool:
    """Whether a name holds a number of more digits than are read."""
    return len(text) > MOST_DIGITS and any(len(digits) > MOST_DIGITS for digits in re.findall(r"\d+", text))


def parse_json_int(text: str) -> int:
    """`parse_int` of a JSON reader; ValueError where there are too many digits."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits; the limit is {MOST_DIGITS:,}")
    return int(text)
