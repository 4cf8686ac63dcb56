"""Create a database from existing events: for a rebuild, and for a backup."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable

from idumb.store import event_chain, event_log, log_errors, schema, segments
from idumb.store.event_chain import Placed
from idumb.system.files import atomic_write

# Unknown owners may have taken a working tree without writing an event; none of their tokens may come back.
_FENCES_UNSEEN = 1000


def make(path: str, fill: Callable[[sqlite3.Connection], None]) -> tuple[int, str]:
    """Create a database, let `fill` fill it, check it and force it to disk. Return number and hash of its last event.

    Removes a leftover of an earlier call. Raises StoreError and OSError; then the file at `path` is incomplete.
    """
    for leftover in (path, f"{path}-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")
        schema.migrate(database)
        fill(database)
        database.execute("COMMIT")
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise log_errors.corrupt(path, "the disk does not keep what is written")
        head = segments.head(database)
    finally:
        database.close()
    with open(path, "rb") as stream:
        atomic_write.sync(stream.fileno())
    return head


def insert(database: sqlite3.Connection, placed: Iterable[Placed], worktree: str, archived: int = 0) -> None:
    """Insert events after number `archived` into the table, and the runs of all events into the index.

    `worktree` is used for runs whose own is unknown. The triggers refuse an event out of place.
    """
    for row, known in placed:
        if row[event_chain.SEQ] > archived:
            database.execute(segments.INSERT_EVENT, row)
        event_log.index_row(database, row, known or worktree)


def fence_off(database: sqlite3.Connection, worktrees: Iterable[str], fence: int, command: str) -> None:
    """Give every working tree a token that no owner ever had. `fence` is the highest known one."""
    row = database.execute("SELECT MAX(fence), MAX(at) FROM events").fetchone()
    highest, at = max(fence, row[0] or 0), row[1] or ""
    names = {str(name) for (name,) in database.execute("SELECT worktree FROM runs")} | set(worktrees)
    for worktree in sorted(names):
        database.execute(
            "INSERT INTO owners (worktree, fence, command, since) VALUES (?, ?, ?, ?)",
            (worktree, highest + _FENCES_UNSEEN, command, at),
        )
