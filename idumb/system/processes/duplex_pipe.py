"""A dialogue with a process over its standard input and output, in which neither side blocks the other."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import select


class Talk(Protocol):
    """idumb's side of a dialogue: sends `begin`, then a reply to each piece received; nothing once it is `over`."""

    @property
    def over(self) -> bool: ...

    def begin(self) -> bytes: ...

    def heard(self, data: bytes) -> bytes: ...


class Talking:
    """Transports a dialogue. `reader` is the read end of a pipe for the process; the starter closes it."""

    def __init__(self, talk: Talk) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._talk = talk
        self._waiting = bytearray(talk.begin())
        self._registered = False

    def tap(self, data: bytes) -> None:
        """Receive bytes from the process."""
        if not self._talk.over:
            self._waiting += self._talk.heard(data)

    def is_over(self, poll: select.poll) -> bool:
        """Send pending bytes. Return whether all were sent."""
        self._flush()
        if bool(self._waiting) != self._registered and self._writer >= 0:
            import select

            poll.register(self._writer, select.POLLOUT) if self._waiting else poll.unregister(self._writer)
            self._registered = bool(self._waiting)
        if self._talk.over and not self._waiting:
            self.close()
            return True
        return False

    def owns(self, handle: int) -> bool:
        return handle == self._writer

    def _flush(self) -> None:
        try:
            while self._waiting and self._writer >= 0:
                del self._waiting[: os.write(self._writer, self._waiting[:65536])]
        except BlockingIOError:
            pass
        except OSError:  # it no longer reads; its exit code shows why
            self._waiting.clear()

    def close(self) -> None:
        if self._writer >= 0:
            with contextlib.suppress(OSError):
                os.close(self._writer)
            self._writer = -1
