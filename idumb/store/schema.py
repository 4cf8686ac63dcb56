"""The tables of the database as SQL.

`events` is the truth, `runs` the chain of runs, `owners` holds the fencing token of each working tree. Every run is a
chain of its own: its first event is chained to its row in `runs`, and each row there to the one before it. Events of no
run form one more chain. The triggers keep the log append-only against any program with an ordinary connection.

Raise CURRENT with every change: a database of another version is refused.
"""

from __future__ import annotations

import sqlite3

CURRENT = 3

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
