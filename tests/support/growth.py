"""Does a program's time grow in proportion to its input? Measured in processor time, as a ratio within one test."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")

_ENOUGH = 0.005
"""Seconds from which a measurement means something."""
_SMALLEST, _LARGEST = 16, 1 << 22
_TRIES = 4


def assert_linear(work: Callable[[Input], object], given: Callable[[int], Input]) -> None:
    """Assert that `work(given(4 * n))` takes less than eight times as long as `work(given(n))`.

    `n` is the first power of two whose work takes five milliseconds. Quadratic work takes sixteen times as long.
    """
    size = _SMALLEST
    while (once := _twice(work, given(size))) < _ENOUGH:
        size *= 2
        assert size < _LARGEST, "the input does not make the program work"
    small, large, least = given(size), given(4 * size), float("inf")
    for _ in range(_TRIES):  # a pause of the processor can lengthen one measurement, not all
        least = min(least, _seconds(work, large))
        if least < 8 * once:
            return
        once = min(once, _seconds(work, small))
    raise AssertionError(f"4 times the input of {size} takes {least / once:.1f} times as long")


def _twice(work: Callable[[Input], object], given: Input) -> float:
    """Measure work that seems enough again: the first call may have imported modules or filled a cache."""
    once = _seconds(work, given)
    return once if once < _ENOUGH else min(once, _seconds(work, given))


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    gc.disable()
    try:
        begun = time.process_time()
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()
