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
_STEEP = 8


def assert_linear(work: Callable[[Input], object], given: Callable[[int], Input]) -> None:
    """Assert that `work(given(4 * n))` takes less than eight times as long as `work(given(n))`.

    `n` is the first power of two whose work takes five milliseconds. Quadratic work takes sixteen times as long, at
    each step. One step can be steep in linear work: where the input outgrows the processor's cache. So it fails only if
    the next step is steep too.
    """
    size = _SMALLEST
    while _twice(work, given(size)) < _ENOUGH:
        size *= 2
        assert size < _LARGEST, "the input does not make the program work"
    steps = []
    for smaller in (size, 4 * size):
        steps.append(_step(work, given(smaller), given(4 * smaller)))
        if steps[-1] < _STEEP:
            return
    raise AssertionError(f"4 and 16 times the input of {size}: each takes {steps} times as long as the one before")


def _step(work: Callable[[Input], object], small: Input, large: Input) -> float:
    """Return how many times as long the large input takes. Others use the processor too: the shortest time counts."""
    once, least = _seconds(work, small), float("inf")
    for _ in range(_TRIES):
        least = min(least, _seconds(work, large))
        if least < _STEEP * once:
            break
        once = min(once, _seconds(work, small))
    return round(least / once, 1)


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
