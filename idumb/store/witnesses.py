"""Whether a database is the one that its witnesses know: anchor, refs, and a copy in the user's state directory.

The copy has one line per event and follows the database, so it may lag behind and never runs ahead. It reveals a
database that is missing, older or damaged, which can then be rebuilt from it. Nothing that happens in the repository's
own folder can reach it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.store import anchor, event_chain, log_errors, segments
from idumb.store.event_chain import Line, Placed
from idumb.system import host_identity
from idumb.system.files import atomic_write, private_folders, user_folders

NAME = "events.jsonl"
_TAIL = 64 * 1024
_TRIES = 40
_LOOK = 0.005  # seconds between two tries


ANCHOR = "anchor.json beside it"
COPY = "its copy in the state directory"
REFS = "refs/idumb in the repository"


def nothing_kept() -> bool:
    return False


class Witnesses:
    """What other files know about the database. `kept_refs` tells whether refs/idumb holds anything."""

    def __init__(
        self, path: str, anchor_path: str, copy: AnchoredCopy, kept_refs: Callable[[], bool], *, copied: bool = True
    ) -> None:
        self._path = path
        self._anchor_path = anchor_path
        self.copy = copy
        self._kept_refs = kept_refs
        self._trusted = None if copied else False

    def require_none(self) -> None:
        """Require that no witness knows of an earlier log, so that a new one may be created.

        StoreError `store.missing`.
        """
        if os.path.exists(self._anchor_path):
            raise log_errors.missing(self._path, f"{ANCHOR} says that")
        if self._kept_refs():
            raise log_errors.missing(self._path, f"{REFS} holds what it recorded, so")

    def require_sound(self, connection: sqlite3.Connection) -> None:
        """Require that every byte is as SQLite left it; if unknown, that tables and indexes match. StoreError."""
        anchored = anchor.read(self._anchor_path)
        altered = None if anchored is None else anchor.altered(connection, anchored)
        if altered:
            raise log_errors.corrupt(self._path, "bytes changed since idumb wrote them")
        if altered is None and anchor.size(connection) <= anchor.LIMIT:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if answer != "ok":
                raise log_errors.corrupt(self._path, answer)

    def require_newest(self, connection: sqlite3.Connection) -> None:
        """StoreError `store.older` or `store.diverged` if a witness knows a later or different history."""
        self._require_anchored(connection)
        if self.trusted():
            self._require_copied(connection)

    def newest(self) -> int:
        anchored = anchor.read(self._anchor_path)
        tail = self.copy.tail() if self.trusted() else None
        return max(0 if anchored is None else anchored.seq, 0 if tail is None else tail[0])

    def trusted(self) -> bool:
        """Return whether only the user can write the copy; any other copy is ignored."""
        if self._trusted is None:
            self._trusted = self.copy.problem() is None
        return self._trusted

    def _require_anchored(self, connection: sqlite3.Connection) -> None:
        anchored = anchor.read(self._anchor_path)
        if anchored is None or anchored.seq == 0:
            return
        own = segments.hash_at(connection, anchored.seq)
        if own is None and anchored.seq > segments.archived(connection):
            raise log_errors.older(self._path, anchored.seq, ANCHOR)
        if own is not None and own != anchored.hash:
            raise self._differs(connection, anchored.seq, ANCHOR)

    def _require_copied(self, connection: sqlite3.Connection) -> None:
        tail = self.copy.tail()
        if tail is None:
            return
        seq, copied = tail
        own = segments.hash_at(connection, seq)
        if own == copied or (own is None and seq <= segments.archived(connection)):
            return
        if own is None:
            last, head = segments.head(connection)
            if last == 0 or self.copy.hash_at(last) == head:
                raise log_errors.older(self._path, seq, COPY)
        raise self._differs(connection, seq, COPY)

    def _differs(self, connection: sqlite3.Connection, seq: int, witness: str) -> StoreError:
        """Return `store.corrupt` if the event does not match its own hash, and `store.diverged` otherwise."""
        row = connection.execute(event_chain.ROW, (seq,)).fetchone()
        fault = None if row is None else event_chain.own_fault(tuple(row))
        return log_errors.diverged(self._path, seq, witness) if fault is None else log_errors.corrupt(self._path, fault)


class AnchoredCopy:
    """The copy that belongs to the repository of `common_dir`. A moved or copied repository starts another."""

    def __init__(self, common_dir: str) -> None:
        self._parts = ("events", user_folders.repository_id(common_dir))
        self.folder = os.path.join(user_folders.path(), *self._parts)
        self.path = os.path.join(self.folder, NAME)
        self._cached_tail: tuple[tuple[int, int, int], tuple[int, str]] | None = None

    def problem(self) -> str | None:
        """Return why another user could have written it, or None."""
        return user_folders.problem(*self._parts) or private_folders.unsafe(self.path)

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

    def follow(self, lines: Sequence[Line], missed: Callable[[int, str], Iterable[Line] | None]) -> bool:
        """Append the lines of the events just written to the log. Return whether the copy has them now.

        `missed(seq, hash)` returns the events after the copy's last one, or None if the log does not know that one.
        Raises OSError; the next call then cuts off a half-written line.
        """
        if not os.path.isdir(self.folder):
            user_folders.prepare(*self._parts)
        with self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            _lock(descriptor)
            last, end, whole = self._tail(descriptor)
            if not whole:
                return False
            seq, head = last or (0, GENESIS)
            missing: Iterable[Line] | None = lines
            if not lines or lines[0][1][event_chain.PREVIOUS] != head:
                missing = () if lines and lines[-1][1][event_chain.SEQ] <= seq else missed(seq, head)
            if missing is None:
                return False
            self._append(descriptor, end, missing)
            return True

    def sync(self) -> None:
        """Force it to disk. Raises OSError."""
        with self._opened(os.O_RDONLY) as descriptor:
            atomic_write.sync(descriptor)
        atomic_write.sync_folder(self.folder)

    def set_aside(self) -> str:
        """Rename the copy aside. Return its new path."""
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
        status = os.fstat(descriptor)
        state = _state(status)
        if self._cached_tail is not None and self._cached_tail[0] == state:
            return self._cached_tail[1], status.st_size, True
        end, text = _last_line(descriptor, status.st_size)
        if not text:
            # Bytes without any line end are not a half-written line: do not cut off what nobody can identify.
            return None, 0, not status.st_size
        placed = event_chain.row_of(text)
        if placed is None:
            return self._last_readable(), end, False
        last = (placed[0][event_chain.SEQ], placed[0][event_chain.HASH])
        if end == status.st_size:
            self._cached_tail = state, last
        return last, end, True

    def _last_readable(self) -> tuple[int, str] | None:
        last = None
        for row, _ in self.lines():
            last = (row[event_chain.SEQ], row[event_chain.HASH])
        return last

    def _append(self, descriptor: int, end: int, lines: Iterable[Line]) -> None:
        if os.fstat(descriptor).st_size != end:
            os.ftruncate(descriptor, end)
        self._cached_tail = None
        last: tuple[int, str] | None = None
        try:
            for text, row in _blocks(lines):
                end += _write_all(descriptor, text, end)
                last = (row[event_chain.SEQ], row[event_chain.HASH])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, end)
            raise
        if last is not None:
            self._cached_tail = _state(os.fstat(descriptor)), last


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
    for tries_left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not tries_left:
                raise
            host_identity.pause(_LOOK)
        else:
            return


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _blocks(lines: Iterable[Line]) -> Iterator[Line]:
    """Join lines to blocks of some size, each with its last row."""
    block: list[bytes] = []
    size, row = 0, None
    for text, row in lines:
        block.append(text)
        size += len(text)
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
    """Return (offset after the last whole line, that line); a rest without a line end is skipped."""
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
