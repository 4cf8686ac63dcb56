"""The tables of each schema version as SQL. A version that was released is never edited: a new one is added.

`events` is the truth; `runs` finds runs without replaying them; `owners` holds the fencing token of each work tree.
The triggers keep the log append-only against any program that comes with an ordinary connection.
"""

from __future__ import annotations

VERSION_1 = (
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
    # seq is the rowid and so the last column of every index: each of them also sorts by it.
    "CREATE INDEX events_by_run ON events (run) WHERE run IS NOT NULL",
    "CREATE INDEX events_by_task ON events (task, run) WHERE task IS NOT NULL",
    "CREATE INDEX events_by_kind ON events (kind)",
    "CREATE INDEX events_by_operation ON events (operation)",
    "CREATE INDEX events_by_time ON events (at)",
    """
    CREATE TRIGGER events_grow_at_the_end BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM events)
        OR NEW.previous IS NOT COALESCE(
            (SELECT hash FROM events ORDER BY seq DESC LIMIT 1),
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
    BEGIN
        SELECT RAISE(ABORT, 'events are never deleted');
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
)
