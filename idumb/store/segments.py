"""Older events in files: `archive/NNNNNN-LAST.jsonl.gz`, one line per event, listed in the table `segments`.

Rows leave the table of events only after their segment was forced to disk, read back and verified link by link. Readers
read the files as if the rows were still there.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import astuple

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.lazy_dataclass import dataclass
from idumb.store import event_chain
from idumb.store.event_chain import Placed

FOLDER = "archive"
ENDING = ".jsonl.gz"
INSERT_EVENT = f"INSERT INTO events ({event_chain.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608


_COLUMNS = "number, name, first_seq, last_seq, previous, head, sha256, at, kinds"


@dataclass(frozen=True, slots=True)
class Segment:
    """`first` to `last` are sequence numbers, `previous` the hash before them, `head` the hash of the last one.

    `kinds` are the kinds of its events, separated by blanks: a query for another kind need not open the file.
    """

    number: int
    name: str
    first: int
    last: int
    previous: str
    head: str
    sha256: str
    at: str
    kinds: str


def listed(connection: sqlite3.Connection) -> tuple[Segment, ...]:
    query = f"SELECT {_COLUMNS} FROM segments ORDER BY number"  # noqa: S608
    return tuple(Segment(*row) for row in connection.execute(query))


def archived(connection: sqlite3.Connection) -> int:
    """Return the newest event in a segment; 0 if there is none."""
    newest = connection.execute("SELECT MAX(last_seq) FROM segments").fetchone()[0]
    return 0 if newest is None else int(newest)


def head(connection: sqlite3.Connection) -> tuple[int, str]:
    """Return (last sequence number, its hash) of the whole log; (0, GENESIS) if it is empty."""
    row = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    if row is None:
        row = connection.execute("SELECT last_seq, head FROM segments ORDER BY number DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (int(row[0]), str(row[1]))


def hash_at(connection: sqlite3.Connection, seq: int) -> str | None:
    """Return the hash of an event; None if it is missing, or inside a segment, where only the file can tell."""
    query = "SELECT hash FROM events WHERE seq = ? UNION ALL SELECT head FROM segments WHERE last_seq = ? LIMIT 1"
    row = connection.execute(query, (seq, seq)).fetchone()
    return None if row is None else str(row[0])


def placed(folder: str, segment: Segment) -> Iterator[Placed]:
    """Yield its events in order, each checked; `folder` is `<common dir>/idumb`. Raises StoreError `store.segment`."""
    path = os.path.join(folder, FOLDER, segment.name)
    seq, head = segment.first - 1, segment.previous
    try:
        for event in _chained(path, seq, head):
            yield event
            seq, head = event[0][event_chain.SEQ], event[0][event_chain.HASH]
        if (seq, head) != (segment.last, segment.head):
            raise ValueError(f"event {seq + 1} is missing")
    except _UNREADABLE as error:
        raise StoreError(
            "store.segment",
            f"the archive of events {segment.first} to {segment.last} is damaged: {path}: {error}",
            hint="idumb doctor --fix",
            details={"path": path, "first": segment.first, "last": segment.last},
        ) from error


def readable(path: str) -> Iterator[Placed]:
    """Yield every readable event of a file, chained or not; stops where the file is damaged."""
    try:
        for text in _unpacked(path):
            event = event_chain.row_of(text)
            if event is not None:
                yield event
    except _UNREADABLE:
        return


def measured(folder: str, name: str, last: int, head: str) -> Segment | None:
    """Return the table's row for a file that follows event `last`; None if the file is not whole."""
    path, newest, kinds = os.path.join(folder, FOLDER, name), None, set()
    try:
        for newest, _ in _chained(path, last, head):
            kinds.add(newest[event_chain.KIND])
    except _UNREADABLE:
        return None
    if newest is None:
        return None
    number = int(name[:6]) if name[:6].isdigit() else 0
    seq, own, at = newest[event_chain.SEQ], newest[event_chain.HASH], newest[event_chain.AT]
    return Segment(number, name, last + 1, seq, head, own, digest(path), at, " ".join(sorted(kinds)))


def register(connection: sqlite3.Connection, segment: Segment) -> None:
    """List a segment; from now on its rows may leave the table.

    The triggers refuse one that does not follow the last.
    """
    connection.execute(f"INSERT INTO segments ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(segment))  # noqa: S608


def digest(path: str) -> str:
    import hashlib

    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_UNREADABLE = (OSError, EOFError, zlib.error, ValueError)


def _chained(path: str, seq: int, head: str) -> Iterator[Placed]:
    """Yield the events of a file, which follow event `seq`. ValueError where one is not as written."""
    for text in _unpacked(path):
        seq += 1
        event = event_chain.row_of(text)
        if event is None or event_chain.fault(event[0], seq, head) is not None:
            raise ValueError(f"event {seq} is not readable")
        yield event
        head = event[0][event_chain.HASH]


def _unpacked(path: str) -> Iterator[bytes]:
    import gzip

    with gzip.open(path, "rb") as stream:
        yield from stream
