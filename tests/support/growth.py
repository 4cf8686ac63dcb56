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
    while (once := _seconds(work, given(size))) < _ENOUGH:
        size *= 2
        assert size < _LARGEST, "the input does not make the program work"
    ratios = []
    large, small = given(4 * size), given(size)
    for _ in range(_TRIES):  # a pause of the processor can lengthen one measurement, not all
        ratios.append(_seconds(work, large) / once)
        if ratios[-1] < 8:
            return
        once = _seconds(work, small)
    raise AssertionError(f"4 times the input of {size} takes {min(ratios):.1f} times as long")


def _seconds(work: Callable[[Input], object], given: Input) -> float:
    gc.disable()
    try:
        begun = time.process_time()
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()
