"""Supervises a running program: captures its output, talks with it and enforces its time limits.

All output is hashed, a part is kept, and everything is passed on as it arrives. Only the first and last pieces are in
memory, whatever the size. The program's end counts, not the end of its output: a daemon may hold that open for ever.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Protocol

from msgspec import Struct

from idumb.system import signals

if TYPE_CHECKING:
    import select
    from threading import Event

    from idumb.system.child_process import Program
    from idumb.system.stalls import TimeLimits
HEAD = 8 * 1024
TAIL = 24 * 1024

MARGIN = 16 * 1024

Sink = Callable[[bytes], None]
Redact = Callable[[str], str]

_CHUNK = 65536
_EVERY = 0.5  # seconds between two polls of a watched file
_DRAIN = 16 * 1024 * 1024
_TICK = 0.02  # seconds between polls where the system cannot wait for output, exit and a stop together
# Seconds between polls elsewhere. While other threads run, a signal can arrive after Python looked for one and before
# it waits; nothing but the end of that wait lets it through.
_SIGNALS = 0.5


class Captured(Struct, frozen=True):
    """What a process printed: size and SHA-256 of the whole, its first bytes and its last.

    `begin` and `end` have MARGIN bytes more than are shown, so that a secret at a cut is recognised as one.
    """

    begin: bytes
    end: bytes
    size: int
    sha256: str

    @property
    def head(self) -> bytes:
        return self.begin[:HEAD]

    @property
    def tail(self) -> bytes:
        """Return the last bytes that are not in the head."""
        shown = min(TAIL, self.size - len(self.head))
        return self.end[-shown:] if shown else b""

    @property
    def truncated(self) -> bool:
        return self.size > HEAD + TAIL

    def text(self, redact: Redact = str) -> str:
        """Return head and tail as text without secrets; NUL and non-UTF-8 bytes become hexadecimal escapes."""
        if not self.truncated:
            return redact(readable(self.head + self.tail))
        # The margins are longer than any secret, and only in them can half of one stand.
        head = redact(readable(self.begin))[: -len(readable(self.begin[HEAD:]))]
        tail = redact(readable(self.end))[len(readable(self.end[:-TAIL])) :]
        # Whole lines if possible.
        head = head[: head.rfind("\n") + 1] or head
        tail = tail[tail.find("\n") + 1 :]
        kept = (self.head.rfind(b"\n") + 1 or HEAD) + TAIL - self.tail.find(b"\n") - 1
        return f"{head.rstrip()}\n[... {self.size - kept} bytes left out ...]\n{tail}"


def readable(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


class Capture:
    """Reads one pipe: hashes everything, keeps the first and last bytes, and passes all on."""

    def __init__(self, pipe: IO[bytes], sink: Sink | None, tap: Sink | None = None) -> None:
        import hashlib

        self.pipe = pipe
        self.handle = pipe.fileno()
        self.open = True
        self.heard: float | None = None  # when something was last printed
        self._sha256 = hashlib.sha256()
        self._begin = b""
        self._end = bytearray()
        self._size = 0
        self._sinks = [each for each in (tap, sink) if each is not None]
        os.set_blocking(self.handle, False)

    def read(self) -> int:
        """Read what is available. Return the number of bytes, 0 if nothing is available or the pipe is at its end."""
        try:
            data = os.read(self.handle, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self.open = False
            return 0
        self.heard = time.monotonic()
        for sink in self._sinks:
            sink(data)
        self._keep(data)
        return len(data)

    def _keep(self, data: bytes) -> None:
        self._sha256.update(data)
        self._size += len(data)
        self._begin += data[: HEAD + MARGIN - len(self._begin)]
        self._end += data
        if len(self._end) > TAIL + MARGIN + 4 * _CHUNK:
            del self._end[: -TAIL - MARGIN]

    def result(self) -> Captured:
        return Captured(self._begin, bytes(self._end[-TAIL - MARGIN :]), self._size, self._sha256.hexdigest())


def captures(child: Program, sink: Sink | None, talking: Talking | None) -> list[Capture]:
    """Return the captures of standard output and, if it is separate, of standard error."""
    made = [Capture(child.stdout, sink, talking.tap if talking else None)] if child.stdout else []
    return [*made, Capture(child.stderr, sink)] if child.stderr else made


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


class Watch(Protocol):
    """The watched file. While it says that the process `waits`, silence is not a stall."""

    @property
    def waits(self) -> bool: ...

    def look(self) -> bool:
        """Read the file. Return whether it has new content. A signal interrupts only after the read."""


class Supervisor:
    """Moves output into the captures until the process ends or a deadline passes."""

    def __init__(
        self,
        child: Program,
        captures: Sequence[Capture],
        talking: Talking | None,
        watch: Watch | None,
        limits: TimeLimits,
        stop: Event | None,
        reap: Callable[[], None],
    ) -> None:
        """`stop` ends the supervision once it is set. `reap` is called whenever nothing happened for half a second."""
        import select

        self._child = child
        self._talking = talking
        self._watch = watch
        self._look_at = time.monotonic() + _EVERY
        self.limits = limits
        self._stop = stop
        self._reap = reap
        self._captures = {capture.handle: capture for capture in captures}
        self._poll: select.poll = select.poll()
        for handle in self._captures:
            self._poll.register(handle, select.POLLIN)
        if child.end >= 0:
            self._poll.register(child.end, select.POLLIN)

    def until_exit(self, deadline: float) -> None:
        """Return when the process has ended, at the latest at `deadline`, on the monotonic clock."""
        while (remaining := deadline - time.monotonic()) > 0:
            if self._turn(remaining) and self._child.poll() is not None:
                return

    def until_over(self, tree: Callable[[], list[int]]) -> bool:
        """Return whether the process, or the dialogue with it, ended in time."""
        while self._stop is None or not self._stop.is_set():
            if self._talking is not None and self._talking.is_over(self._poll):
                return True
            if time.monotonic() >= self._look_at:
                self._look()
            heard = max((c.heard for c in self._captures.values() if c.heard is not None), default=None)
            moment, now = self.limits.next_look(heard), time.monotonic()
            if moment is not None and moment <= now:
                if self._child.poll() is not None:
                    return True
                self._look()
                if self.limits.look(heard, tree()):
                    return False
                continue
            until = self._look_at if moment is None else min(moment, self._look_at)
            if self._turn(until - now) and self._child.poll() is not None:
                return True
        return False

    def _look(self) -> None:
        """Read the watched file, if there is one. A signal interrupts only afterwards."""
        self._look_at = time.monotonic() + _EVERY
        if self._watch is not None:
            with signals.held():
                spoke = self._watch.look()
            self.limits.report(spoke=spoke, waits=self._watch.waits)

    def _turn(self, limit: float) -> bool:
        """Wait for one event. Return whether the process may have ended."""
        limit = min(limit, _TICK if self._child.end < 0 or self._stop is not None else _SIGNALS)
        ended = self._child.end < 0
        events = self._poll.poll(max(1, limit * 1000))
        if not events:
            self._reap()
        for handle, _ in events:
            if handle == self._child.end:
                ended = True
            elif (capture := self._captures.get(handle)) is not None and capture.read() == 0 and not capture.open:
                self._poll.unregister(handle)
        return ended

    def close(self) -> None:
        """Read a bounded amount of remaining output from the pipes and close them."""
        for capture in self._captures.values():
            taken = 0
            while capture.open and taken < _DRAIN and (count := capture.read()):
                taken += count
            capture.pipe.close()
