"""A dialogue with a process over its standard input and output, in which neither waits for the other to read."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import select


class Talk(Protocol):
    """What is said: `begin` first, then an answer to each piece that is heard. Once `over`, nothing more is said."""

    @property
    def over(self) -> bool: ...

    def begin(self) -> bytes: ...

    def heard(self, data: bytes) -> bytes: ...


class Talking:
    """Carries a talk. `reader` is the end of a pipe for the process, closed by who starts it."""

    def __init__(self, talk: Talk) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._talk = talk
        self._waiting = bytearray(talk.begin())
        self._registered = False

    def tap(self, data: bytes) -> None:
        """Take in what the process said."""
        if not self._talk.over:
            self._waiting += self._talk.heard(data)

    def is_over(self, poll: select.poll) -> bool:
        """Say what there is to be said; whether that was all."""
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
        except OSError:  # it reads no more; how it ended is told by its exit
            self._waiting.clear()

    def close(self) -> None:
        if self._writer >= 0:
            with contextlib.suppress(OSError):
                os.close(self._writer)
            self._writer = -1
