"""A database made from events that exist already: for a rebuild, and for a backup."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable

from idumb.store import event_chain, event_log, log_errors, schema, segments
from idumb.store.anchored_copy import Placed
from idumb.system.files import atomic_write

# Tokens of owners that took a work tree and never wrote an event are not known; none of them may come back.
_FENCES_UNSEEN = 1000


def make(path: str, fill: Callable[[sqlite3.Connection], None]) -> tuple[int, str]:
    """A new database with what `fill` puts in, checked and forced to disk; its last event's number and hash.

    A leftover of an earlier call goes. Raises StoreError and OSError; what is at `path` then is not whole.
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
    """Events after number `archived` into the table, the runs of all of them into their index.

    `worktree` is where a run is put whose own is not known. The triggers refuse an event out of its place.
    """
    for row, known in placed:
        if row[event_chain.SEQ] > archived:
            database.execute(segments.INSERT_EVENT, row)
        event_log.follow_row(database, row, known or worktree)


def fence_off(database: sqlite3.Connection, worktrees: Iterable[str], fence: int, command: str) -> None:
    """Every work tree gets a token that no owner ever had. `fence` is the highest one that is known."""
    row = database.execute("SELECT MAX(fence), MAX(at) FROM events").fetchone()
    highest, at = max(fence, row[0] or 0), row[1] or ""
    names = {str(name) for (name,) in database.execute("SELECT worktree FROM runs")} | set(worktrees)
    for worktree in sorted(names):
        database.execute(
            "INSERT INTO owners (worktree, fence, command, since) VALUES (?, ?, ?, ?)",
            (worktree, highest + _FENCES_UNSEEN, command, at),
        )
