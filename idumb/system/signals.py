"""Turns signals into an exception where stopping is safe. A second signal exits at once; recovery handles that."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Wrappers forward a terminal's Ctrl-C to a program that already received it; that is not a second request.
_ONE_PRESS = 0.25
_GRACE = 0.3


class _Hold:
    """Defers the exception of a signal, in the one thread that handles signals."""

    depth = 0
    pending: Exception | None = None


def keep_exit_codes() -> None:
    """Let this process see how programs end.

    If its parent ignored SIGCHLD, the system drops their exit codes, and each would count as 0.
    """
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Raise a signal's exception at the end of the block, not inside it.

    Python would drop an exception raised during a fork: hooks around a fork must not fail.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # the main thread handles signals and is not deferred here
        return
    _Hold.depth += 1
    deferred = None
    try:
        yield
    finally:
        _Hold.depth -= 1
        if _Hold.depth == 0:
            deferred, _Hold.pending = _Hold.pending, None
    if deferred is not None:
        raise deferred


class SignalInterrupts:
    """Signals as exceptions, raised only where stopping is safe; `interrupted` creates one from a signal's number.

    `install` handles the signals for the rest of the process. `say` is called with the signal's number before an
    immediate exit; it must not raise, because the program can be at any point.
    """

    def __init__(self, interrupted: Callable[[int], Exception], say: Callable[[int], None] = lambda _: None) -> None:
        self._interrupted = interrupted
        self._say = say
        self.received: int | None = None
        self._at = 0.0
        self._armed = False

    def install(self) -> None:
        for number in CAUGHT:
            signal.signal(number, self._handle)

    def check(self) -> None:
        if self.received is not None:
            raise self._interrupted(self.received)

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        self.check()
        before, self._armed = self._armed, True
        try:
            yield
        finally:
            self._armed = before

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received, self._at = number, time.monotonic()
            if self._armed:
                self._armed = False
                raise_or_defer(self._interrupted(number))
        elif time.monotonic() - self._at > _ONE_PRESS:
            self._leave(number)

    def _leave(self, number: int) -> None:
        """Kill everything that was started, and this process, without cleanup."""
        from idumb.system import process_end, process_tree

        for caught in CAUGHT:
            signal.signal(caught, signal.SIG_IGN)
        with contextlib.suppress(Exception):
            started = process_tree.descendants([os.getpid()])[1:]
            process_end.send(started, signal.SIGTERM)  # git removes its locks
            process_end.wait_gone(started, _GRACE)
            process_end.send(process_tree.descendants([os.getpid()])[1:], signal.SIGKILL)
        with contextlib.suppress(Exception):
            self._say(number)
        os._exit(128 + number)


def raise_or_defer(interruption: Exception) -> None:
    """Raise an exception from a signal handler; inside a `held` block, at its end."""
    if _Hold.depth:
        _Hold.pending = interruption
    else:
        raise interruption


@contextlib.contextmanager
def until_signalled() -> Iterator[Callable[[], object]]:
    """Yield a function that waits until this process is asked to end, by any termination signal."""
    signalled = threading.Event()
    before = {number: signal.signal(number, lambda *_: signalled.set()) for number in CAUGHT}
    try:
        yield signalled.wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
