"""The event log in SQLite, and the index of runs that is written in the same transactions."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.app import ports
from idumb.domain import canonical, run
from idumb.domain.errors import StoreError
from idumb.domain.event import GENESIS, KINDS, ChainCheck, Event, NewEvent, chain_hash
from idumb.store import connection

PAGE = 500

_COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608

_RUN_STATES: Mapping[str, str] = {
    "run.resumed": run.ACTIVE,
    "run.halted": run.HALTED,
    "run.interrupted": run.INTERRUPTED,
    "run.completed": run.COMPLETED,
    "run.failed": run.FAILED,
    "rollback.completed": run.HALTED,
}

Row = tuple[Any, ...]


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
        return tuple(_event(row) for row in rows)

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
        conditions = [f"{column} = ?" for column, value in equal.items() if value is not None]
        arguments: list[Any] = [value for value in equal.values() if value is not None]
        for bound, comparison in ((since, ">="), (until, "<=")):
            if bound is not None:
                # The plus keeps SQLite from sorting by the index of times once for every page.
                conditions.append(f"+at {comparison} ?")
                arguments.append(bound)
        first = max(after, self._seq_before(since)) if since is not None else after
        pages = self._pages(conditions, arguments, first, limit, newest_first=newest_first)
        return (_event(row) for row in pages)

    def head(self) -> tuple[int, str]:
        return self.database.read(_head, (0, GENESIS))

    def verify(self) -> ChainCheck:
        """Compute every hash again and follow the chain from the first event to the last."""
        previous, count = GENESIS, 0
        for row in self._pages([], [], 0, None, newest_first=False):
            why = _fault(row, count + 1, previous)
            if why is not None:
                return ChainCheck(count, previous, broken_at=count + 1, why=why)
            previous, count = row[11], count + 1
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
            _index_run(db, new, row[0], self._worktree)
        return rows

    def _pages(
        self, conditions: Sequence[str], arguments: Sequence[Any], after: int, limit: int | None, *, newest_first: bool
    ) -> Iterator[Row]:
        left = limit
        bounds: list[Any] = [after]
        condition = " AND ".join([*conditions, "seq > ?"])
        order = "DESC" if newest_first else "ASC"
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            query = f"SELECT {_COLUMNS} FROM events WHERE {condition} ORDER BY seq {order} LIMIT ?"  # noqa: S608
            page = _rows(self.database, query, [*arguments, *bounds, size])
            yield from page
            if len(page) < size:
                return
            left = None if left is None else left - len(page)
            if newest_first:
                bounds = [after, page[-1][0]]
                condition = " AND ".join([*conditions, "seq > ?", "seq < ?"])
            else:
                bounds = [page[-1][0]]

    def _seq_before(self, since: str) -> int:
        """The last number before every event of `since` or later: the clock may have gone back in between."""
        rows = _rows(self.database, "SELECT MIN(seq) FROM events WHERE at >= ?", [since])
        return rows[0][0] - 1 if rows and rows[0][0] is not None else 0


class SqliteRunIndex:
    """Implements the port `RunIndex` on the database of a log."""

    def __init__(self, database: connection.Database, worktree: str) -> None:
        self._database = database
        self._worktree = worktree

    def latest(self, phase: str) -> str | None:
        query = "SELECT id FROM runs WHERE phase = ? AND worktree = ? ORDER BY started_seq DESC LIMIT 1"
        rows = _rows(self._database, query, [phase, self._worktree])
        return rows[0][0] if rows else None

    def count(self, phase: str) -> int:
        """Runs of a phase in all work trees of the repository: they share the log, and so the numbers of runs."""
        rows = _rows(self._database, "SELECT COUNT(*) FROM runs WHERE phase = ?", [phase])
        return rows[0][0] if rows else 0

    def phases(self) -> tuple[str, ...]:
        """Phases that were run in this work tree, in the order of their first run."""
        query = "SELECT phase FROM runs WHERE worktree = ? GROUP BY phase ORDER BY MIN(started_seq)"
        return tuple(row[0] for row in _rows(self._database, query, [self._worktree]))


def _rows(database: connection.Database, query: str, arguments: Sequence[Any]) -> list[Row]:
    nothing: list[Row] = []
    return database.read(lambda db: db.execute(query, arguments).fetchall(), nothing)


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


def _event(row: Row) -> Event:
    seq, operation, run_id, task, attempt, kind, payload, version, fence, at, previous, own = row
    return Event(
        seq, operation, run_id, task, attempt, kind, json.loads(payload), version, fence, at, previous, own
    )  # fmt: skip


def _head(db: sqlite3.Connection) -> tuple[int, str]:
    row = db.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


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


def _index_run(db: sqlite3.Connection, new: NewEvent, seq: int, worktree: str) -> None:
    if new.kind == "run.started":
        db.execute(
            "INSERT INTO runs (id, phase, worktree, number, started_seq, state) VALUES (?, ?, ?, ?, ?, ?)",
            (new.run, new.payload["phase"], worktree, new.payload["number"], seq, run.ACTIVE),
        )
    elif new.kind in _RUN_STATES:
        db.execute("UPDATE runs SET state = ? WHERE id = ?", (_RUN_STATES[new.kind], new.run))


def _fault(row: Row, seq: int, previous: str) -> str | None:
    """Why a row cannot stand at this place of the chain, or None."""
    if row[0] != seq:
        return f"event {seq} is missing"
    if row[10] != previous:
        return f"event {seq} is not chained to the event before it"
    own = chain_hash(
        seq=row[0], operation=row[1], run=row[2], task=row[3], attempt=row[4], kind=row[5], payload=row[6],
        version=row[7], fence=row[8], at=row[9], previous=row[10],
    )  # fmt: skip
    return None if own == row[11] else f"event {seq} is not what it was when it was written"
