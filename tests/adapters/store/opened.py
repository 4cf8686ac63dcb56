"""A log with its owner, and the database beneath it as any other program sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from idumb.domain.runs.event import NewEvent
from idumb.store.backups import LogBackups
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from tests.support.fixed_clock import FixedClock


class OpenedLog:
    """`folder` stands for the repository's common dir."""

    def __init__(self, folder: Path, worktree: str = "main", kept_refs: Callable[[], bool] = lambda: False) -> None:
        self.folder = folder
        self.path = folder / "idumb" / "store.db"
        self.log = SqliteEventLog(Database(str(folder), kept_refs), worktree, FixedClock())
        self.owner = FileOwnership(self.log.database, worktree, FixedClock())

    @property
    def backups(self) -> LogBackups:
        return self.log.database.backups

    @property
    def newest(self) -> Path:
        """What the state directory records of the newest event."""
        return Path(self.backups.folder) / "newest.json"

    def fill(self, count: int) -> int:
        """Own the working tree and append `count` events one by one; return the fencing token."""
        fence = self.owner.acquire("idumb test")
        for number in range(count):
            self.append(fence, number)
        return fence

    def append(self, fence: int, number: int = 0) -> None:
        self.log.append([NewEvent("evidence.recorded", {"n": number}, run="r")], operation="o", fence=fence)

    def stop(self, fence: int) -> None:
        self.log.append([NewEvent("run.halted", {"reason": ""}, run="r")], operation="o", fence=fence)

    def close(self) -> None:
        """Release everything without a backup, as a process does when it dies."""
        self.log.database.close()


@contextmanager
def outside(path: Path) -> Iterator[sqlite3.Connection]:
    """An ordinary connection of another program."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def without_triggers(path: Path, *statements: str) -> None:
    """Change the database as a person who knows the schema could."""
    with outside(path) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
