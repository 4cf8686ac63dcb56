"""The full output of an agent if it is too long for the log: a bounded file without secrets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Protocol

from idumb.domain.agent import AgentRequest


class Stream(Protocol):
    """Redacts bytes that arrive in pieces."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class Transcript:
    """A sink for output; the file is created with the first piece and holds at most `limit` bytes of output."""

    def __init__(self, folder: str, name: str, limit: int, stream: Callable[[], Stream]) -> None:
        self._path = os.path.join(folder, name)
        self._left = limit
        self._make_stream = stream
        self._stream: Stream | None = None
        self._file: IO[bytes] | None = None

    def __call__(self, data: bytes) -> None:
        if self._file is None or self._stream is None:
            self._file, self._stream = self._open(), self._make_stream()
        if self._left > 0:
            self._file.write(self._stream.feed(data[: self._left]))
        self._left -= len(data)

    def close(self) -> str | None:
        """Return the file's path, or None if there was no output."""
        if self._file is None or self._stream is None:
            return None
        with self._file:
            last = self._stream.finish()
            # Half a secret at the cut would not be recognised.
            self._file.write(last if self._left >= 0 else last[: last.rfind(b"\n") + 1])
            if self._left < 0:
                self._file.write(f"\n[{-self._left} more bytes were not kept]\n".encode("ascii"))
        return self._path

    def _open(self) -> IO[bytes]:
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self._path, flags, 0o600), "wb")


def spooled(request: AgentRequest, folder: str | None, stream: Callable[[], Stream] | None) -> Transcript | None:
    """Return a transcript for one request, or None if nothing is spooled."""
    if folder is None or stream is None:
        return None
    name = f"{request.subject}-{request.attempt}-{request.role}.log"
    return Transcript(folder, name, request.budget.output_bytes, stream)
