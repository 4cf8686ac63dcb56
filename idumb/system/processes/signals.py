"""Signals become an exception where stopping is safe; a second one leaves at once, which recovery copes with."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Wrappers pass a terminal's Ctrl-C on to a program that got it already; that is no second wish.
_ONE_PRESS = 0.25
_GRACE = 0.3


class _Hold:
    """What keeps the exception of a signal back, in the one thread that handles signals."""

    depth = 0
    wanted: Exception | None = None


@contextlib.contextmanager
def held() -> Iterator[None]:
    """The exception of a signal comes at the end of the block, not in it.

    Raised while a process forks, Python would drop it: hooks that run around a fork may not fail.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # the main thread handles signals; what it does meanwhile is not held back
        return
    _Hold.depth += 1
    wanted = None
    try:
        yield
    finally:
        _Hold.depth -= 1
        if _Hold.depth == 0:
            wanted, _Hold.wanted = _Hold.wanted, None
    if wanted is not None:
        raise wanted


class SignalInterrupts:
    """Implements the `Interrupts` port; `interrupted` makes the exception from a signal's number.

    `install` takes the signals over for the rest of the process. `say` is called before it leaves at once, with the
    signal's number; nothing may be raised then, for it can be in the middle of anything.
    """

    def __init__(self, interrupted: Callable[[int], Exception], say: Callable[[int], None] = lambda _: None) -> None:
        self._interrupted = interrupted
        self._say = say
        self._received: int | None = None
        self._at = 0.0
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
        before, self._armed = self._armed, True
        try:
            yield
        finally:
            self._armed = before

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._received is None:
            self._received, self._at = number, time.monotonic()
            if self._armed:
                self._armed = False
                _raise(self._interrupted(number))
        elif time.monotonic() - self._at > _ONE_PRESS:
            self._leave(number)

    def _leave(self, number: int) -> None:
        """End everything that was started, and this process, without any clearing up: as a kill would."""
        from idumb.system.processes import process_tree

        for caught in CAUGHT:
            signal.signal(caught, signal.SIG_IGN)
        with contextlib.suppress(Exception):
            started = process_tree.descendants([os.getpid()])[1:]
            process_tree.send(started, signal.SIGTERM)  # git takes its locks away
            process_tree.wait_gone(started, _GRACE)
            process_tree.send(process_tree.descendants([os.getpid()])[1:], signal.SIGKILL)
        with contextlib.suppress(Exception):
            self._say(number)
        os._exit(128 + number)


def _raise(wanted: Exception) -> None:
    if _Hold.depth:
        _Hold.wanted = wanted
    else:
        raise wanted


@contextlib.contextmanager
def until_told() -> Iterator[Callable[[], None]]:
    """Gives a function that waits until this process is told to end, by any of the signals that mean that."""
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in CAUGHT}

    def wait() -> None:
        told.wait()

    try:
        yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
