"""Events as rows: the tables of the database, how each row fits its place in its chain, and rows as lines of text.

`events` is the truth, `runs` the chain of runs, `owners` holds the fencing token of each working tree. Every run is a
chain of its own: its first event is chained to its row in `runs`, and each row there to the one before it. Events of no
run form one more chain. The triggers keep the log append-only against any program with an ordinary connection.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS, ChainCheck, Event, NewEvent

COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
SEQ, RUN, PAYLOAD, PREVIOUS, HASH = 0, 2, 6, 10, 11
ROW = f"SELECT {COLUMNS} FROM events WHERE seq = ?"  # noqa: S608
RUN_COLUMNS = "position, id, phase, worktree, number, started_seq, previous, hash"

Row = tuple[Any, ...]

Heads = dict[str | None, str]
"""The hash that the next event of each run is chained to; None are the events of no run."""

_NAMES = COLUMNS.split(", ")

CURRENT = 3
"""Raise it with every change of the tables: a database of another version is refused."""

_STATEMENTS = (
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        operation TEXT NOT NULL,
        run TEXT,
        task TEXT,
        attempt INTEGER,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT NOT NULL,
        fence INTEGER NOT NULL,
        at TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL
    )
    """,
    # seq is the rowid and so the last column of every index: each index also sorts by it.
    "CREATE INDEX events_by_run ON events (run)",
    "CREATE INDEX events_by_task ON events (task, run) WHERE task IS NOT NULL",
    "CREATE INDEX events_by_kind ON events (kind)",
    "CREATE INDEX events_by_operation ON events (operation)",
    "CREATE INDEX events_by_time ON events (at)",
    """
    CREATE TRIGGER events_grow_at_the_end BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM events)
        OR NEW.previous IS NOT COALESCE(
            (SELECT hash FROM events WHERE run IS NEW.run ORDER BY seq DESC LIMIT 1),
            (SELECT hash FROM runs WHERE id = NEW.run),
            '0000000000000000000000000000000000000000000000000000000000000000'
        )
    BEGIN
        SELECT RAISE(ABORT, 'events are appended, each chained to the last one of its run');
    END
    """,
    """
    CREATE TRIGGER archived_runs_have_ended BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE kind = 'log.archived' AND run = NEW.run)
    BEGIN
        SELECT RAISE(ABORT, 'the run is archived');
    END
    """,
    """
    CREATE TRIGGER events_never_change BEFORE UPDATE ON events
    BEGIN
        SELECT RAISE(ABORT, 'events are never changed');
    END
    """,
    """
    CREATE TRIGGER events_never_go BEFORE DELETE ON events
    WHEN OLD.kind IN ('run.started', 'history.recorded', 'log.archived')
        OR NOT EXISTS (SELECT 1 FROM events WHERE kind = 'log.archived' AND run = OLD.run AND seq > OLD.seq)
    BEGIN
        SELECT RAISE(ABORT, 'events are never deleted before their run is archived');
    END
    """,
    """
    CREATE TABLE runs (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        phase TEXT NOT NULL,
        worktree TEXT NOT NULL,
        number INTEGER NOT NULL,
        started_seq INTEGER NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL
    )
    """,
    "CREATE INDEX runs_by_phase ON runs (phase, worktree, started_seq)",
    """
    CREATE TRIGGER runs_grow_at_the_end BEFORE INSERT ON runs
    WHEN NEW.position IS NOT (SELECT COALESCE(MAX(position), 0) + 1 FROM runs)
        OR NEW.previous IS NOT COALESCE(
            (SELECT hash FROM runs ORDER BY position DESC LIMIT 1),
            '0000000000000000000000000000000000000000000000000000000000000000'
        )
    BEGIN
        SELECT RAISE(ABORT, 'runs are appended, each chained to the last one');
    END
    """,
    """
    CREATE TRIGGER runs_never_change BEFORE UPDATE ON runs
    BEGIN
        SELECT RAISE(ABORT, 'runs are never changed');
    END
    """,
    """
    CREATE TRIGGER runs_never_go BEFORE DELETE ON runs
    BEGIN
        SELECT RAISE(ABORT, 'runs are never deleted');
    END
    """,
    """
    CREATE TABLE owners (
        worktree TEXT PRIMARY KEY,
        fence INTEGER NOT NULL,
        command TEXT NOT NULL,
        since TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER fences_only_grow BEFORE UPDATE ON owners
    WHEN NEW.fence <= OLD.fence
    BEGIN
        SELECT RAISE(ABORT, 'a fencing token never comes back');
    END
    """,
)


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version; 0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database; do nothing if another process did."""
    if version(connection) == 0:
        for statement in _STATEMENTS:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {CURRENT:d}")


def own_fault(row: Row) -> str | None:
    """Return why a row is not what was written; None if its own hash matches."""
    try:
        own = hash_of(row)
    except (AttributeError, TypeError, ValueError):
        return f"event {row[SEQ]} is not readable"
    return None if own == row[HASH] else f"event {row[SEQ]} was changed after it was written"


def hash_of(row: Row) -> str:
    """Return the SHA-256 over every field of an event but its hash; its payload is canonical JSON text."""
    fields = canonical_json.flat([*row[:PAYLOAD], *row[PAYLOAD + 1 : HASH]])
    return hashlib.sha256(fields.encode("ascii") + b"\n" + row[PAYLOAD].encode("ascii")).hexdigest()


def run_row(position: int, run: Sequence[Any], previous: str) -> Row:
    """Return the row of a run; `run` is (id, phase, working tree, number, first event)."""
    fields = (position, *run, previous)
    return (*fields, canonical_json.digest(list(fields)))


def chain(
    events: Iterable[tuple[NewEvent, str]], seq: int, heads: Heads, *, operation: str, fence: int, at: str
) -> list[Row]:
    """Return the rows of new events, given with the text of their payloads, that follow event `seq`."""
    rows = []
    heads = dict(heads)
    for new, payload in events:
        seq += 1
        previous = heads.get(new.run, GENESIS)
        row = (seq, operation, new.run, new.task, new.attempt, new.kind, payload, new.version, fence, at, previous)
        heads[new.run] = hash_of(row)
        rows.append((*row, heads[new.run]))
    return rows


def follow(rows: Iterable[Row], heads: Heads) -> ChainCheck:
    """Follow every chain through rows that are sorted by number. A row may come twice, if both are the same."""
    count, head = 0, GENESIS
    for row in rows:
        if row[SEQ] == count and row[HASH] == head:
            continue
        if row[SEQ] != count + 1:
            return ChainCheck(count, head, broken_at=count + 1, why=f"event {count + 1} is missing")
        chained = row[PREVIOUS] == heads.get(row[RUN], GENESIS)
        why = own_fault(row) if chained else f"event {row[SEQ]} is not chained to the event before it"
        if why is not None:
            return ChainCheck(count, head, broken_at=count + 1, why=why)
        count, head = row[SEQ], row[HASH]
        heads[row[RUN]] = head
    return ChainCheck(count, head)


def run_heads(rows: Iterable[Row]) -> Heads | None:
    """Return what the first event of each run is chained to, from the rows of all runs; None if one was changed."""
    previous, heads = GENESIS, Heads()
    for position, row in enumerate(rows, 1):
        if row != run_row(position, row[1:-2], previous):
            return None
        previous = heads[row[1]] = row[-1]
    return heads


def line(row: Row) -> bytes:
    """Return an event as canonical JSON with a line end."""
    fields = dict(zip(_NAMES, row, strict=True))
    return canonical_json.encode({**fields, "payload": json.loads(row[PAYLOAD])}) + b"\n"


def row_of(text: bytes) -> Row:
    """Return the row of a line. ValueError if it is damaged."""
    try:
        fields = canonical_json.decode(text)
        fields["payload"] = canonical_json.encode(fields["payload"]).decode("ascii")
        return tuple(fields[name] for name in _NAMES)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def events(rows: Sequence[Row]) -> Iterator[Event]:
    """Yield the events of rows, with their payloads as values."""
    # One call per page: starting the decoder costs as much as a small payload.
    payloads = json.loads("[" + ",".join([row[PAYLOAD] for row in rows]) + "]")
    for row, payload in zip(rows, payloads, strict=True):
        seq, operation, run, task, attempt, kind, _, version, fence, at, previous, own = row
        yield Event(seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own)
