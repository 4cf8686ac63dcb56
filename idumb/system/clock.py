"""The clock. It does not import `datetime`, because quick commands must start fast."""

from __future__ import annotations

import time

TICK = 20_000_000
"""Nanoseconds. Some kernels stamp files only every few milliseconds: two writes within a tick may have one time."""


class SystemClock:
    """Implements the port `Clock`."""

    def now(self) -> str:
        return text(time.time_ns())

    def monotonic(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


def nanoseconds() -> int:
    """Return wall-clock time since 1970 in nanoseconds, comparable with file times."""
    return time.time_ns()


def text(since_epoch: int) -> str:
    """Return nanoseconds since 1970 as UTC, in ISO 8601 with microseconds and `Z`."""
    seconds, rest = divmod(since_epoch, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"
