"""Real time limits on a busy machine, which may start a program late or hold it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def patient(attempt: Callable[[float], Result], went_well: Callable[[Result], bool], seconds: float) -> Result:
    """Return the first result of `attempt(seconds)` that went well, with ten and a hundred times as long if it did not.

    The last result if none did. So a test is as quick as the machine allows, and fails only if patience does not help.
    """
    for longer in (1, 10, 100):
        result = attempt(seconds * longer)
        if went_well(result):
            break
    return result
