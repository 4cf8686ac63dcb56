"""Signals become an exception where stopping is safe; a second one stops at once, which recovery copes with."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalInterrupts:
    """Implements the `Interrupts` port; `interrupted` makes the exception from a signal's number.

    `install` takes the signals over for the rest of the process.
    """

    def __init__(self, interrupted: Callable[[int], Exception]) -> None:
        self._interrupted = interrupted
        self._received: int | None = None
        self._armed = False

    def install(self) -> None:
        for number in CAUGHT:
            signal.signal(number, self._handle)

    def check(self) -> None:
        if self._received is not None:
            raise self._interrupted(self._received)

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        self.check()
        self._armed = True
        try:
            yield
        finally:
            self._armed = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        second = self._received is not None
        self._received = number
        if self._armed or second:
            self._armed = False
            raise self._interrupted(number)
