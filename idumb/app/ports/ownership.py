"""The right to write in one working tree, and signals that interrupt its holder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


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

    def cancel_requested_by(self) -> str | None:
        """The user who asked this owner to stop, or None."""

    def ask_to_pause(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        """Ask the holder to stop after its current task."""

    def pause_asked(self) -> tuple[str, str] | None:
        """(user, reason) of a request to pause this owner, or None."""


class Interrupts(Protocol):
    """Signals as `Interrupted`, raised only where stopping is safe. `received` is the signal that came, if any."""

    received: int | None

    def check(self) -> None:
        """Raise Interrupted if the user asked to stop."""

    def armed(self) -> AbstractContextManager[None]:
        """In this context, a signal raises Interrupted at once; outside, it waits for the next `check`."""
