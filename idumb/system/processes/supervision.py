"""Supervises a running program: captures its output and enforces its time limits.

All output is hashed, a part is kept, and everything is passed on as it arrives. Only the first and last pieces are in
memory, whatever the size. The program's end counts, not the end of its output: a daemon may hold that open for ever.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Protocol

from idumb.lazy_dataclass import dataclass
from idumb.system.processes import signals, stalls

if TYPE_CHECKING:
    import select

    from idumb.system.processes.duplex_pipe import Talking
    from idumb.system.processes.started_program import Program

HEAD = 8 * 1024
TAIL = 24 * 1024

MARGIN = 16 * 1024

Sink = Callable[[bytes], None]
Redact = Callable[[str], str]
Progress = Callable[[bytes], bool]

_CHUNK = 65536
_EVERY = 0.5  # seconds between two polls of a watched file
_DRAIN = 16 * 1024 * 1024
_TICK = 0.02  # seconds between polls where the system cannot wait for output and exit together
# Seconds between polls elsewhere. While other threads run, a signal can arrive after Python looked for one and before
# it waits; nothing but the end of that wait lets it through.
_SIGNALS = 0.5


@dataclass(frozen=True, slots=True)
class Captured:
    """What a process printed: the first and last bytes, and size and SHA-256 of the whole.

    `after_head` and `before_tail` are the bytes beyond the two cuts. They serve to recognise a secret that a cut
    divides; they are never shown.
    """

    head: bytes
    tail: bytes
    size: int
    sha256: str
    after_head: bytes = b""
    before_tail: bytes = b""

    @property
    def truncated(self) -> bool:
        return self.size > len(self.head) + len(self.tail)

    def text(self, redact: Redact = str) -> str:
        """Return head and tail as text without secrets; NUL and non-UTF-8 bytes become hexadecimal escapes."""
        if not self.truncated:
            return redact(readable(self.head + self.tail))
        head = _same_start(redact(readable(self.head)), redact(readable(self.head + self.after_head)))
        tail = _same_start(redact(readable(self.tail))[::-1], redact(readable(self.before_tail + self.tail))[::-1])[
            ::-1
        ]
        # Whole lines if possible.
        head = head[: head.rfind("\n") + 1] or head
        tail = tail[tail.find("\n") + 1 :]
        kept = len(self.head[: self.head.rfind(b"\n") + 1] or self.head) + len(self.tail) - self.tail.find(b"\n") - 1
        return f"{head.rstrip()}\n[... {self.size - kept} bytes left out ...]\n{tail}"


def _same_start(first: str, second: str) -> str:
    """Return the common beginning of two texts. Half of a secret may follow it in one, the whole in the other."""
    if second.startswith(first):
        return first
    least, most = 0, min(len(first), len(second))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if first[:middle] == second[:middle] else (least, middle - 1)
    return first[:least]


def readable(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


class Capture:
    """Reads one pipe: hashes everything, keeps the first and last bytes, and passes all on."""

    def __init__(
        self, pipe: IO[bytes], sink: Sink | None, tap: Sink | None = None, progress: Progress | None = None
    ) -> None:
        import hashlib

        self.pipe = pipe
        self.handle = pipe.fileno()
        self.open = True
        self.heard: float | None = None  # when progress was last printed
        self._sha256 = hashlib.sha256()
        self._head = b""
        self._after_head = b""
        self._tail = bytearray()
        self._size = 0
        self._sink = sink
        self._tap = tap
        self._progress = progress
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
        if self._progress is None or self._progress(data):
            self.heard = time.monotonic()
        if self._tap is not None:
            self._tap(data)
        if self._sink is not None:
            self._sink(data)
        self._keep(data)
        return len(data)

    def _keep(self, data: bytes) -> None:
        self._sha256.update(data)
        self._size += len(data)
        if missing := HEAD - len(self._head):
            self._head += data[:missing]
            data = data[missing:]
        if missing := MARGIN - len(self._after_head):
            self._after_head += data[:missing]
        self._tail += data
        if len(self._tail) > MARGIN + TAIL + 4 * _CHUNK:
            del self._tail[: -TAIL - MARGIN]

    def result(self) -> Captured:
        tail, before = bytes(self._tail[-TAIL:]), bytes(self._tail[-TAIL - MARGIN : -TAIL])
        return Captured(self._head, tail, self._size, self._sha256.hexdigest(), self._after_head, before)


def captures(child: Program, sink: Sink | None, talking: Talking | None, progress: Progress | None) -> list[Capture]:
    """Return the captures of standard output and, if it is separate, of standard error, which is never progress."""
    made = [Capture(child.stdout, sink, talking.tap if talking else None, progress)] if child.stdout else []
    if child.stderr:
        made.append(Capture(child.stderr, sink, None, _no_progress if progress else None))
    return made


def _no_progress(_: bytes) -> bool:
    return False


class TimeLimits:
    """`expired` is the limit that expired, "" for none, and `cause` why.

    Moments are on the monotonic clock, spans in seconds; None means no limit.
    """

    def __init__(self, started: float, timeout: float | None, idle_timeout: float | None, *, agent: bool) -> None:
        self.expired = ""
        self.cause: stalls.Cause | None = None
        self._deadline = None if timeout is None else started + timeout
        self._idle = idle_timeout
        self._worked = started
        self._agent = agent
        self._waits = False
        spans = [span for span in (timeout, idle_timeout) if span is not None]
        self._window = min(stalls.WINDOW, min(spans, default=0.0) / 2)
        self._before: stalls.Sample | None = None

    def report(self, *, spoke: bool, waits: bool) -> None:
        """Record the process's own report: new content, or that it is waiting.

        Neither counts as silence. Waiting does not extend the total limit.
        """
        self._waits = waits
        if spoke or waits:
            self._worked = time.monotonic()

    def next_look(self, heard: float | None) -> float | None:
        """Return when to call `look`; `heard` is when the process last printed something, or None."""
        over = self._over(heard)
        if over is None:
            return None
        return over if self._is_fresh(over) else over - self._window

    def look(self, heard: float | None, pids: Sequence[int]) -> bool:
        """Return whether a limit has expired. Called earlier, it records what the processes have used so far."""
        over = self._over(heard)
        if over is None or not self._is_fresh(over):
            self._before = stalls.sample(pids)
            return False
        limit = stalls.WALL if over == self._deadline else stalls.IDLE
        busy = stalls.works(self._before, stalls.sample(pids))
        if limit == stalls.IDLE and busy is not False:  # silence is no stall if the system does not show what it does
            self._worked = time.monotonic()
            return False
        silence = None if heard is None else time.monotonic() - heard
        self.expired = limit
        self.cause = stalls.of_limit(limit, busy=busy, agent=self._agent, silence=silence, says_it_waits=self._waits)
        return True

    def _over(self, heard: float | None) -> float | None:
        quiet = None if self._idle is None or self._waits else max(heard or 0.0, self._worked) + self._idle
        moments = [moment for moment in (self._deadline, quiet) if moment is not None]
        return min(moments, default=None)

    def _is_fresh(self, over: float) -> bool:
        return self._before is not None and self._before.at >= over - self._window


class Watch(Protocol):
    """The watched file. While it says that the process `waits`, silence is not a stall."""

    @property
    def waits(self) -> bool: ...

    def look(self) -> bool:
        """Read the file. Return whether it has new content. A signal interrupts only after the read."""


class Watching:
    """Polls when due, however often it is called."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._due = time.monotonic() + _EVERY

    def turn(self, limits: TimeLimits) -> float:
        """Poll if due and update `limits`. Return when the next poll is due, on the monotonic clock."""
        if time.monotonic() >= self._due:
            self.look(limits)
        return self._due

    def look(self, limits: TimeLimits) -> None:
        """Poll now; called before a process is declared silent."""
        self._due = time.monotonic() + _EVERY
        with signals.held():
            spoke = self._watch.look()
        limits.report(spoke=spoke, waits=self._watch.waits)


class Supervisor:
    """Moves output into the captures until the process ends or a deadline passes."""

    def __init__(
        self,
        child: Program,
        captures: Sequence[Capture],
        talking: Talking | None,
        watching: Watching | None,
        limits: TimeLimits,
        reap: Callable[[], None],
    ) -> None:
        """`reap` is called whenever nothing happened for half a second."""
        import select

        self._child = child
        self._talking = talking
        self._watching = watching
        self.limits = limits
        self._reap = reap
        self._captures = {capture.handle: capture for capture in captures}
        self._poll: select.poll = select.poll()
        for handle in self._captures:
            self._poll.register(handle, select.POLLIN)
        if child.end >= 0:
            self._poll.register(child.end, select.POLLIN)

    def until_exit(self, deadline: float | None) -> bool:
        """Return whether the process ended before `deadline` (on the monotonic clock)."""
        while True:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return self._child.poll() is not None
            if self._turn(remaining) and self._child.poll() is not None:
                return True

    def until_over(self, tree: Callable[[], list[int]]) -> bool:
        """Return whether the process, or the dialogue with it, ended in time."""
        while True:
            if self._talking is not None and self._talking.is_over(self._poll):
                return True
            due = None if self._watching is None else self._watching.turn(self.limits)
            heard = max((c.heard for c in self._captures.values() if c.heard is not None), default=None)
            moment, now = self.limits.next_look(heard), time.monotonic()
            if moment is not None and moment <= now:
                if self._child.poll() is not None:
                    return True
                if self._watching is not None:
                    self._watching.look(self.limits)
                if self.limits.look(heard, tree()):
                    return False
                continue
            until = min((at for at in (moment, due) if at is not None), default=None)
            if self._turn(None if until is None else until - now) and self._child.poll() is not None:
                return True

    def _turn(self, limit: float | None) -> bool:
        """Wait for one event. Return whether the process may have ended."""
        most = _TICK if self._child.end < 0 else _SIGNALS
        limit = most if limit is None else min(limit, most)
        ended = self._child.end < 0
        events = self._poll.poll(max(1, limit * 1000))
        if not events:
            self._reap()
        for handle, _ in events:
            if handle == self._child.end:
                ended = True
            elif self._talking is not None and self._talking.owns(handle):
                pass
            elif self._captures[handle].read() == 0 and not self._captures[handle].open:
                self._poll.unregister(handle)
        return ended

    def close(self) -> None:
        """Read a bounded amount of remaining output from the pipes and close them."""
        for capture in self._captures.values():
            taken = 0
            while capture.open and taken < _DRAIN and (count := capture.read()):
                taken += count
            capture.pipe.close()
