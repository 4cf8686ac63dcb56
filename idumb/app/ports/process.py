"""What a process works with: the event log, the right to write, signals, its clock, sandboxes, and its user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from idumb.domain.runs.event import Event
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.domain.action import Answer, Decision
    from idumb.domain.permissions import Fence, Support


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


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Who asks an owner to stop, and why: now, or after its current task."""

    by: str
    why: str
    after_task: bool


class Asker(Protocol):
    """Asks the user at the terminal."""

    @property
    def interactive(self) -> bool:
        """Whether a user can be asked. False after a question was not answered in time."""

    def ask(self, decision: Decision) -> Answer | None:
        """The answer; None if nobody can be asked or nothing was decided."""


class Reporter(Protocol):
    """Shows progress and never fails the run. Receives each event after it is durable."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        """Start with the tasks of the run in execution order, and their statuses."""

    def event(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...
