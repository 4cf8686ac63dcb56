"""What an agent did in an attempt, as short lines: text, tool calls, files, tokens so far. Without secrets, bounded.

Each adapter writes one; `show TASK --transcript` prints it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING

from idumb.agents import answers
from idumb.system import private_folders

if TYPE_CHECKING:
    from idumb.system.redaction import Stream

HALF = 1024 * 1024
"""Bytes of the beginning that are kept, and of the end."""


class Transcript:
    """The transcript of one call, in a file that is created with the first line.

    A second call in the same role of an attempt continues its file. What cannot be written is not kept: no work is lost
    to its transcript. Without a path, or a way to redact, nothing is kept.
    """

    def __init__(self, path: str, make_stream: Callable[[], Stream] | None) -> None:
        self._path = path
        self._make_stream = make_stream
        self._opened: tuple[IO[bytes], Stream] | None = None
        self._room = HALF
        self._tail = bytearray()
        self._left_out = 0
        self._failed = not path

    def line(self, words: str) -> None:
        """Add one short line."""
        self(f"{answers.one_line(words)}\n".encode("utf-8", "replace"), is_whole=True)

    def __call__(self, data: bytes, *, is_whole: bool = False) -> None:
        """Add output as it is. Nothing of what `is_whole` waits for more, so that boards show it."""
        if self._failed or self._make_stream is None:
            return
        try:
            self._opened = file, stream = self._opened or (self._open(), self._make_stream())
            self._keep(file, stream.feed(data) + (stream.finish() if is_whole else b""))
        except OSError:
            self._failed = True

    def close(self) -> str | None:
        """Return the file's path, or None if there was no line, or none could be written."""
        if self._opened is None:
            return None
        file, stream = self._opened
        try:
            with file:
                self._keep(file, stream.finish())
                self._shorten()
                if self._left_out:
                    file.write(f"\n[{self._left_out} bytes in between were not kept]\n".encode("ascii"))
                file.write(self._tail)
        except OSError:
            self._failed = True
        return None if self._failed else self._path

    def _keep(self, file: IO[bytes], data: bytes) -> None:
        head, rest = data[: self._room], data[self._room :]
        file.write(head)
        self._room -= len(head)
        self._tail += rest
        if len(self._tail) > 2 * HALF:
            self._shorten()

    def _shorten(self) -> None:
        """Keep the end, from the beginning of a line if there is one."""
        excess = len(self._tail) - HALF
        if excess > 0:
            cut = self._tail.find(b"\n", excess) + 1 or excess
            self._left_out += cut
            del self._tail[:cut]

    def _open(self) -> IO[bytes]:
        folder = os.path.dirname(self._path)
        private_folders.make(folder, root=os.path.dirname(os.path.dirname(folder)))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0)  # boards read it meanwhile


def place(folder: str, subject: str, attempt: int, role: str) -> str:
    """Return the file of one role in an attempt, in the folder of its run."""
    return os.path.join(folder, f"{subject}-{attempt}-{role}.log")


def kept(folder: str, subject: str, attempt: int) -> Mapping[str, str]:
    """Return the transcripts of an attempt, by role."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    prefix, texts = os.path.basename(place("", subject, attempt, "")).removesuffix(".log"), dict[str, str]()
    for name in names:
        if name.startswith(prefix):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                texts[name.removeprefix(prefix).removesuffix(".log")] = file.read()
    return texts
