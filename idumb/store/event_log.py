"""The event log in SQLite: appended to in single durable transactions, read in pages."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Iterator, Sequence

from idumb.app import ports
from idumb.domain import canonical
from idumb.domain.errors import StoreError
from idumb.domain.event import GENESIS, KINDS, ChainCheck, Event, NewEvent, chain_hash
from idumb.store import connection, pages, run_index
from idumb.store.pages import COLUMNS, Row

_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608


class SqliteEventLog:
    """Implements the port `EventLog`. Nothing is created on disk before the first `append`."""

    def __init__(self, common_dir: str, worktree: str, clock: ports.Clock) -> None:
        self.database = connection.Database(common_dir)
        self._worktree = worktree
        self._clock = clock

    def append(self, events: Sequence[NewEvent], *, operation: str, fence: int) -> tuple[Event, ...]:
        """One durable transaction. StoreError `store.fence` when `fence` is not this work tree's current one.

        The payloads of what is given back have been through JSON, so they are what a later replay will see.
        """
        encoded = [(new, _encoded(new)) for new in events]
        if not encoded:
            return ()
        rows = self.database.write(functools.partial(self._insert, encoded, operation, fence))
        return tuple(_events(rows))

    def events(
        self,
        *,
        run: str | None = None,
        task: str | None = None,
        kind: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        until: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]:
        """Events that fit every filter, by sequence number. `since` and `until` are inclusive, `after` is not.

        Read a page at a time, so that a slow reader never stands in the way of a writer.
        """
        equal = {"run": run, "task": task, "kind": kind, "operation": operation}
        where = pages.Where(
            equal={column: value for column, value in equal.items() if value is not None},
            since=since,
            until=until,
            after=after,
        )
        for page in pages.pages(self.database, where, limit=limit, newest_first=newest_first):
            yield from _events(page)

    def head(self) -> tuple[int, str]:
        return self.database.read(_head, (0, GENESIS))

    def verify(self) -> ChainCheck:
        """Compute every hash again and follow the chain from the first event to the last.

        StoreError `store.corrupt` when the file is damaged, which can hide events from queries by an index.
        """
        self.database.read(_require_sound, None)
        previous, count = GENESIS, 0
        for page in pages.pages(self.database, pages.Where()):
            for row in page:
                why = _fault(row, count + 1, previous)
                if why is not None:
                    return ChainCheck(count, previous, broken_at=count + 1, why=why)
                previous, count = row[-1], count + 1
        return ChainCheck(count, previous)

    def _insert(
        self, encoded: Sequence[tuple[NewEvent, str]], operation: str, fence: int, db: sqlite3.Connection
    ) -> list[Row]:
        _require_fence(db, self._worktree, fence)
        seq, previous = _head(db)
        at = self._clock.now()
        rows = []
        for new, payload in encoded:
            seq += 1
            previous, row = _row(new, payload, seq, operation, fence, at, previous)
            rows.append(row)
        db.executemany(_INSERT, rows)
        for (new, _), row in zip(encoded, rows, strict=True):
            run_index.follow(db, new, row[0], self._worktree)
        return rows


def _encoded(new: NewEvent) -> str:
    if new.kind not in KINDS:
        raise ValueError(f"no such kind of event: {new.kind}")
    return canonical.encode(dict(new.payload)).decode("ascii")


def _row(new: NewEvent, payload: str, seq: int, operation: str, fence: int, at: str, previous: str) -> tuple[str, Row]:
    """(hash, row) of an event at its place."""
    own = chain_hash(
        seq=seq, operation=operation, run=new.run, task=new.task, attempt=new.attempt, kind=new.kind, payload=payload,
        version=new.version, fence=fence, at=at, previous=previous,
    )  # fmt: skip
    return own, (
        seq, operation, new.run, new.task, new.attempt, new.kind, payload, new.version, fence, at, previous, own,
    )  # fmt: skip


def _events(rows: Sequence[Row]) -> Iterator[Event]:
    if not rows:
        return
    # One call for the whole page: the decoder's start costs as much as a small payload.
    try:
        payloads = json.loads("[" + ",".join([row[6] for row in rows]) + "]")
    except (ValueError, TypeError) as error:
        raise StoreError(
            "store.corrupt",
            f"a payload among events {rows[0][0]} to {rows[-1][0]} is not readable",
            hint="idumb audit verify",
        ) from error
    for row, payload in zip(rows, payloads, strict=True):
        seq, operation, run, task, attempt, kind, _, version, fence, at, previous, own = row
        yield Event(seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own)


def _head(db: sqlite3.Connection) -> tuple[int, str]:
    row = db.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


def _require_sound(db: sqlite3.Connection) -> None:
    found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(
            "store.corrupt", f"the event log's file is damaged: {found}", hint="put a backup of store.db in its place"
        )


def _require_fence(db: sqlite3.Connection, worktree: str, fence: int) -> None:
    row = db.execute("SELECT fence FROM owners WHERE worktree = ?", (worktree,)).fetchone()
    current = row[0] if row else None
    if current != fence:
        raise StoreError(
            "store.fence",
            f"another idumb has taken over this work tree (fencing token {current}, this one has {fence})",
            hint="idumb status",
            details={"fence": fence, "current": current},
        )


def _fault(row: Row, seq: int, previous: str) -> str | None:
    """Why a row cannot stand at this place of the chain, or None."""
    if row[0] != seq:
        return f"event {seq} is missing"
    if row[10] != previous:
        return f"event {seq} is not chained to the event before it"
    try:
        own = _hash_of(row)
    except (AttributeError, TypeError, ValueError):
        return f"event {seq} is not readable"
    return None if own == row[11] else f"event {seq} is not what it was when it was written"


def _hash_of(row: Row) -> str:
    return chain_hash(
        seq=row[0], operation=row[1], run=row[2], task=row[3], attempt=row[4], kind=row[5], payload=row[6],
        version=row[7], fence=row[8], at=row[9], previous=row[10],
    )  # fmt: skip
