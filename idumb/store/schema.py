"""The tables of the database as SQL.

`events` is the truth; `runs` finds runs without replaying them; `owners` holds the fencing token of each working tree;
`segments` lists the files that older events were moved to. The triggers keep the log append-only against any program
with an ordinary connection.

Raise CURRENT with every change: a database of another version is refused.
"""

from __future__ import annotations

import sqlite3

CURRENT = 2

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
    "CREATE INDEX events_by_run ON events (run) WHERE run IS NOT NULL",
    "CREATE INDEX events_by_task ON events (task, run) WHERE task IS NOT NULL",
    "CREATE INDEX events_by_kind ON events (kind)",
    "CREATE INDEX events_by_operation ON events (operation)",
    "CREATE INDEX events_by_time ON events (at)",
    """
    CREATE TRIGGER events_grow_at_the_end BEFORE INSERT ON events
    WHEN NEW.seq IS NOT COALESCE(
            (SELECT MAX(seq) FROM events),
            (SELECT MAX(last_seq) FROM segments),
            0
        ) + 1
        OR NEW.previous IS NOT COALESCE(
            (SELECT hash FROM events ORDER BY seq DESC LIMIT 1),
            (SELECT head FROM segments ORDER BY number DESC LIMIT 1),
            '0000000000000000000000000000000000000000000000000000000000000000'
        )
    BEGIN
        SELECT RAISE(ABORT, 'events are appended, each chained to the last one');
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
    WHEN OLD.seq > COALESCE((SELECT MAX(last_seq) FROM segments), 0)
    BEGIN
        SELECT RAISE(ABORT, 'events are never deleted before they are in a segment');
    END
    """,
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        phase TEXT NOT NULL,
        worktree TEXT NOT NULL,
        number INTEGER NOT NULL,
        started_seq INTEGER NOT NULL,
        state TEXT NOT NULL
    ) WITHOUT ROWID
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
    """
    CREATE TRIGGER fences_only_grow BEFORE UPDATE ON owners
    WHEN NEW.fence <= OLD.fence
    BEGIN
        SELECT RAISE(ABORT, 'a fencing token never comes back');
    END
    """,
    """
    CREATE TABLE segments (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        previous TEXT NOT NULL,
        head TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        at TEXT NOT NULL,
        kinds TEXT NOT NULL
    )
    """,
    """
    CREATE TRIGGER segments_follow_each_other BEFORE INSERT ON segments
    WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM segments)
        OR NEW.first_seq IS NOT (SELECT COALESCE(MAX(last_seq), 0) + 1 FROM segments)
        OR NEW.last_seq < NEW.first_seq
        OR NEW.previous IS NOT COALESCE(
            (SELECT head FROM segments ORDER BY number DESC LIMIT 1),
            '0000000000000000000000000000000000000000000000000000000000000000'
        )
    BEGIN
        SELECT RAISE(ABORT, 'segments follow each other, each chained to the last one');
    END
    """,
    """
    CREATE TRIGGER segments_never_change BEFORE UPDATE ON segments
    BEGIN
        SELECT RAISE(ABORT, 'segments are never changed');
    END
    """,
    """
    CREATE TRIGGER segments_never_go BEFORE DELETE ON segments
    BEGIN
        SELECT RAISE(ABORT, 'segments are never deleted');
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
