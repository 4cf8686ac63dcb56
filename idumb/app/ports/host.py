"""The machine: its clock, and what limits where programs write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from idumb.domain.runs.sandbox import Fence, Support


class Clock(Protocol):
    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and `Z`."""

    def monotonic(self) -> float:
        """Seconds, only for durations."""

    def pause(self, seconds: float) -> None:
        """Wait for this time or until an interruption."""


class Sandboxes(Protocol):
    """What limits where programs write."""

    def support(self) -> Support:
        """What this machine supports; it is tried once."""

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        """Arguments before those of a program, which then writes only where `fence` allows it; () for no sandbox."""
