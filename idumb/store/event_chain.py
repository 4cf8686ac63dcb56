"""Events as rows: the tables of the database, and how each row fits its place in its chain.

`events` is the truth, `runs` the chain of runs, `owners` holds the fencing token of each working tree. Every run is a
chain of its own: its first event is chained to its row in `runs`, and each row there to the one before it. Events of no
run form one more chain. The triggers keep the log append-only against any program with an ordinary connection.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS, ChainCheck, Event, NewEvent

COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
SEQ, RUN, PAYLOAD, PREVIOUS, HASH = 0, 2, 6, 10, 11
ROW = f"SELECT {COLUMNS} FROM events WHERE seq = ?"  # noqa: S608
RUN_COLUMNS = "position, id, phase, worktree, number, started_seq, previous, hash"

Row = tuple[Any, ...]
STORED = tuple[int, str, str | None, str | None, int | None, str, str, int, int, str, str, str]
"""The types of a row with these columns."""

Heads = dict[str | None, str]
"""The hash that the next event of each run is chained to; None are the events of no run."""

CURRENT = 5
"""Raise it with every change of the tables or of a stored record: a database of another version is refused."""

_NONE = f"'{GENESIS}'"
_TABLES = (
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
    CREATE TABLE owners (
        worktree TEXT PRIMARY KEY,
        fence INTEGER NOT NULL,
        command TEXT NOT NULL,
        since TEXT NOT NULL
    ) WITHOUT ROWID
    """,
)
_REFUSED: Mapping[str, tuple[str, str, str]] = {
    "events_grow_at_the_end": (
        "INSERT ON events",
        f"""NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM events)
        OR NEW.previous IS NOT COALESCE(
            (SELECT hash FROM events WHERE run IS NEW.run ORDER BY seq DESC LIMIT 1),
            (SELECT hash FROM runs WHERE id = NEW.run),
            {_NONE}
        )""",  # noqa: S608
        "events are appended, each chained to the last one of its run",
    ),
    "archived_runs_have_ended": (
        "INSERT ON events",
        "EXISTS (SELECT 1 FROM events WHERE kind = 'log.archived' AND run = NEW.run)",
        "the run is archived",
    ),
    "events_never_change": ("UPDATE ON events", "1", "events are never changed"),
    "events_never_go": (
        "DELETE ON events",
        """OLD.kind IN ('run.started', 'history.recorded', 'log.archived')
        OR NOT EXISTS (SELECT 1 FROM events WHERE kind = 'log.archived' AND run = OLD.run AND seq > OLD.seq)""",
        "events are never deleted before their run is archived",
    ),
    "runs_grow_at_the_end": (
        "INSERT ON runs",
        f"""NEW.position IS NOT (SELECT COALESCE(MAX(position), 0) + 1 FROM runs)
        OR NEW.previous IS NOT
            COALESCE((SELECT hash FROM runs ORDER BY position DESC LIMIT 1), {_NONE})""",  # noqa: S608
        "runs are appended, each chained to the last one",
    ),
    "runs_never_change": ("UPDATE ON runs", "1", "runs are never changed"),
    "runs_never_go": ("DELETE ON runs", "1", "runs are never deleted"),
    "fences_only_grow": ("UPDATE ON owners", "NEW.fence <= OLD.fence", "a fencing token never comes back"),
}
"""The triggers: which change each refuses, under which condition, and in which words."""


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version; 0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database; do nothing if another process did."""
    if version(connection) == 0:
        for statement in _TABLES:
            connection.execute(statement)
        for name, (change, condition, words) in _REFUSED.items():
            body = f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{words}'); END"
            connection.execute(f"CREATE TRIGGER {name} BEFORE {change} {body}")
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


def events(rows: Sequence[Row]) -> Iterator[Event]:
    """Yield the events of rows, with their payloads as values."""
    # One call per page: starting the decoder costs as much as a small payload.
    payloads = json.loads("[" + ",".join([row[PAYLOAD] for row in rows]) + "]")
    for row, payload in zip(rows, payloads, strict=True):
        seq, operation, run, task, attempt, kind, _, version, fence, at, previous, own = row
        yield Event(seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own)
