"""The right to write in one working tree, and signals that interrupt its holder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Who asks an owner to stop, and why: now, or after its current task."""

    by: str
    why: str
    after_task: bool


class Ownership(Protocol):
    """One owner per working tree."""

    def acquire(self, command: str, *, force: bool = False) -> int:
        """Acquire ownership; return the fencing token. Refusal `lock.held` or `lock.elsewhere` describes the holder.

        `force` takes the working tree from an owner on another machine, whose token is refused from then on.
        """

    def release(self) -> None: ...

    def check(self, fence: int) -> bool:
        """Whether the token is still the current one."""

    def guard(self) -> None:
        """Refusal `lock.lost` if another process took over ownership. Call it before each effect."""

    def holder(self) -> Mapping[str, Any] | None:
        """The apparent owner: pid, host, since, command, fence, standing; None if there is none."""

    def ask_to_stop_after_task(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        """Ask the holder to stop after its current task."""

    def stop_request(self) -> StopRequest | None:
        """The request to stop that a user wrote for this owner, or None."""


class Interrupts(Protocol):
    """Signals as `Interrupted`, raised only where stopping is safe. `received` is the signal that came, if any."""

    received: int | None

    def check(self) -> None:
        """Raise Interrupted if the user asked to stop."""

    def armed(self) -> AbstractContextManager[None]:
        """In this context, a signal raises Interrupted at once; outside, it waits for the next `check`."""
