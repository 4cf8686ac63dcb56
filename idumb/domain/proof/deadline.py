"""The time in which a gate must judge, for gates that run in this process."""

from __future__ import annotations

from collections.abc import Callable

from idumb.lazy_dataclass import dataclass


class OutOfTimeError(Exception):
    """A gate cannot judge something in its time."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds` after it was set, it has passed. `now` returns seconds of a clock that only moves forward.

    What must keep to it asks before each unit of work, whose size it limits: nothing is ever stopped in the middle.
    """

    seconds: float
    ends: float
    now: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, now: Callable[[], float]) -> Deadline:
        return cls(seconds, now() + seconds, now)

    @property
    def passed(self) -> bool:
        return self.now() > self.ends


NEVER = Deadline(float("inf"), float("inf"), lambda: 0.0)
