"""A clock that advances one second per call, from 2026-01-02 03:04:05 UTC."""

from __future__ import annotations

from idumb.system import clock

START = 1_767_323_045


class FixedClock:
    """Implements the port `Clock`. Set `seconds` to turn it forward or back."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> str:
        self.seconds += 1
        return clock.text((START + self.seconds - 1) * 1_000_000_000)

    def monotonic(self) -> float:
        return float(self.seconds)

    def pause(self, seconds: float) -> None:
        self.seconds += int(seconds)
