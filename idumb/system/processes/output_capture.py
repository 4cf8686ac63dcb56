"""Captures what a process prints: hashes all of it, keeps a part, and passes it on as it arrives.

Only the first and last pieces are in memory, whatever the size.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

HEAD = 8 * 1024
TAIL = 24 * 1024

MARGIN = 16 * 1024

Sink = Callable[[bytes], None]
Redact = Callable[[str], str]
Progress = Callable[[bytes], bool]

_CHUNK = 65536


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


def _same_start(one: str, other: str) -> str:
    """Return the common beginning of two texts: after it comes half of a secret that only the other text has whole."""
    if other.startswith(one):
        return one
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[:middle] == other[:middle] else (least, middle - 1)
    return one[:least]


def readable(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


class Capture:
    """Reads one pipe: hashes everything, keeps the first and last bytes, and passes large output on."""

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
            self._pass_on(self._sink, data)
        self._keep(data)
        return len(data)

    def _pass_on(self, sink: Sink, data: bytes) -> None:
        if self._size + len(data) > HEAD + TAIL:
            if self._size <= HEAD + TAIL:  # everything was kept so far
                sink(self._head + bytes(self._tail))
            sink(data)

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
