"""A copy of the event log in the user's state directory: one line per event, append-only.

It follows the database, so it may lag behind and never runs ahead. It reveals a database that is missing, older or
damaged, which can then be rebuilt from it. Nothing that happens in the repository's own folder can reach it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from idumb.domain.runs.event import GENESIS
from idumb.store import event_chain
from idumb.store.event_chain import Row
from idumb.system import host_identity
from idumb.system.files import atomic_write, user_folders

NAME = "events.jsonl"
_TAIL = 64 * 1024
_TRIES = 40
_LOOK = 0.005  # seconds between two tries

Placed = tuple[Row, str | None]
"""A row and the working tree it was written from."""


class AnchoredCopy:
    """The copy that belongs to the repository of `common_dir`. A moved or copied repository starts another."""

    def __init__(self, common_dir: str) -> None:
        self._parts = ("events", user_folders.repository_id(common_dir))
        self.folder = os.path.join(user_folders.path(), *self._parts)
        self.path = os.path.join(self.folder, NAME)
        self._known: tuple[tuple[int, int, int], tuple[int, str]] | None = None

    def problem(self) -> str | None:
        """Return why another user could have written it, or None."""
        return user_folders.problem(*self._parts) or user_folders.unsafe(self.path)

    def tail(self) -> tuple[int, str] | None:
        """Return (sequence number, hash) of its last event; None if there is no usable copy."""
        try:
            with self._opened(os.O_RDONLY) as descriptor:
                return self._tail(descriptor)[0]
        except OSError:
            return None

    def lines(self) -> Iterator[Placed]:
        """Yield every readable event, in order; damaged lines are skipped."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return
        with open(descriptor, "rb") as stream:
            for text in stream:
                placed = event_chain.row_of(text)
                if placed is not None:
                    yield placed

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of an event: GENESIS for 0, None if the copy lacks the event."""
        if seq == 0:
            return GENESIS
        return next((row[event_chain.HASH] for row, _ in self.lines() if row[event_chain.SEQ] == seq), None)

    def follow(self, rows: Sequence[Placed], missed: Callable[[int, str], Iterable[Placed] | None]) -> bool:
        """Append the events just written to the log. Return whether the copy has them now.

        `missed(seq, hash)` returns the events after the copy's last one, or None if the log does not know that one.
        Raises OSError; the next call then cuts off a half-written line.
        """
        user_folders.prepare(*self._parts)
        with self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            _lock(descriptor)
            last, end, whole = self._tail(descriptor)
            if not whole:
                return False
            seq, head = last or (0, GENESIS)
            wanted: Iterable[Placed] | None = rows
            if not rows or rows[0][0][event_chain.PREVIOUS] != head:
                wanted = () if rows and rows[-1][0][event_chain.SEQ] <= seq else missed(seq, head)
            if wanted is None:
                return False
            self._append(descriptor, end, wanted)
            return True

    def sync(self) -> None:
        """Force it to disk. Raises OSError."""
        with self._opened(os.O_RDONLY) as descriptor:
            atomic_write.sync(descriptor)
        atomic_write.sync_folder(self.folder)

    def set_aside(self) -> str:
        """Rename it aside. Return the new name."""
        return set_aside(self.path, "kept")

    def damaged(self) -> int:
        """Count the unreadable lines, except a half-written last one."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return 0
        with open(descriptor, "rb") as stream:
            return sum(1 for text in stream if text.endswith(b"\n") and event_chain.row_of(text) is None)

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _tail(self, descriptor: int) -> tuple[tuple[int, str] | None, int, bool]:
        """Return (last event, its end offset, whether the last whole line is that event)."""
        found = os.fstat(descriptor)
        state = _state(found)
        if self._known is not None and self._known[0] == state:
            return self._known[1], found.st_size, True
        end, text = _last_line(descriptor, found.st_size)
        if not text:
            # Bytes without any line end are not a half-written line: do not cut off what nobody can identify.
            return None, 0, not found.st_size
        placed = event_chain.row_of(text)
        if placed is None:
            return self._last_readable(), end, False
        last = (placed[0][event_chain.SEQ], placed[0][event_chain.HASH])
        if end == found.st_size:
            self._known = state, last
        return last, end, True

    def _last_readable(self) -> tuple[int, str] | None:
        last = None
        for row, _ in self.lines():
            last = (row[event_chain.SEQ], row[event_chain.HASH])
        return last

    def _append(self, descriptor: int, end: int, rows: Iterable[Placed]) -> None:
        if os.fstat(descriptor).st_size != end:
            os.ftruncate(descriptor, end)
        self._known = None
        last: tuple[int, str] | None = None
        try:
            for text, row in _blocks(rows):
                end += _write_all(descriptor, text, end)
                last = (row[event_chain.SEQ], row[event_chain.HASH])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, end)
            raise
        if last is not None:
            self._known = _state(os.fstat(descriptor)), last


def set_aside(path: str, word: str) -> str:
    """Rename a file to the first free `NAME.WORD-N` beside it, and return that path. Nothing is overwritten."""
    for number in range(1, 1_000_000):
        place = f"{path}.{word}-{number}"
        try:
            # Reserve the name first, because a rename replaces an existing file.
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        except FileExistsError:
            continue
        os.rename(path, place)
        return place
    raise FileExistsError(path)


def _lock(descriptor: int) -> None:
    """Raises OSError while another process holds it: one stopped process must not stop all others."""
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
            host_identity.pause(_LOOK)
        else:
            return


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _blocks(rows: Iterable[Placed]) -> Iterator[tuple[bytes, Row]]:
    """Join lines to blocks of some size, each with its last row."""
    block: list[bytes] = []
    size, row = 0, None
    for row, worktree in rows:
        block.append(event_chain.line(row, worktree))
        size += len(block[-1])
        if size > _TAIL:
            yield b"".join(block), row
            block, size = [], 0
    if block and row is not None:
        yield b"".join(block), row


def _write_all(descriptor: int, text: bytes, at: int) -> int:
    rest, place = memoryview(text), at
    while rest:
        written = os.pwrite(descriptor, rest, place)
        rest, place = rest[written:], place + written
    return len(text)


def _last_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """Yield (offset after the last whole line, that line); a rest without a line end is skipped."""
    length = _TAIL
    while True:
        start = max(0, size - length)
        text = os.pread(descriptor, size - start, start)
        end = text.rfind(b"\n") + 1
        before = text.rfind(b"\n", 0, max(0, end - 1)) + 1
        if end and (before or not start):
            return start + end, text[before:end]
        if not start:
            return 0, b""
        length *= 4
