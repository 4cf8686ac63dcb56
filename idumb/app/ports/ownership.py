"""The right to write in one working tree, and signals that interrupt its holder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Ownership(Protocol):
    """One owner per work tree."""

    def acquire(self, command: str, *, force: bool = False) -> int:
        """The fencing token; raises Refusal `lock.held` or `lock.elsewhere` with pid, host and since of the holder.

        `force` takes the work tree from an owner on another machine, whose token is refused from then on.
        """

    def release(self) -> None: ...

    def check(self, fence: int) -> bool:
        """Whether the token is still the current one."""

    def guard(self) -> None:
        """Before each effect: Refusal `lock.lost` where this process was the owner and another one took over."""

    def holder(self) -> Mapping[str, Any] | None:
        """Who seems to own the work tree: pid, host, since, command, fence, standing; None when nobody does."""

    def overtaken(self) -> Mapping[str, Any] | None:
        """As `holder`: a process of this machine that lived and owned the work tree when this one got it; else None."""

    def ask(self, holder: Mapping[str, Any], by: str) -> bool:
        """Ask a holder of this machine to stop; whether it let go within ten seconds."""

    def end(self, holder: Mapping[str, Any]) -> None:
        """Kill a holder of this machine and what it started, as pulling the plug would."""

    def asked(self) -> str | None:
        """Who asked this owner to stop; None when nobody did."""

    def ask_to_pause(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        """Leave word for the holder that it is to stop after the task that it is at."""

    def pause_asked(self) -> tuple[str, str] | None:
        """(who, why) of a person who asked this owner to pause; None when nobody did."""


class Interrupts(Protocol):
    """Signals, turned into `Interrupted` only where stopping is safe."""

    def check(self) -> None:
        """Raise Interrupted when the user asked to stop."""

    def armed(self) -> AbstractContextManager[None]:
        """Inside, a signal raises Interrupted at once; outside, it waits for the next `check`."""
