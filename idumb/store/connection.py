"""The one place that opens the database. Reading never creates anything; every write is one immediate transaction.

Why a rollback journal and not a write-ahead log: losing the log's side file loses acknowledged events while every
integrity check still passes, and older SQLite libraries can corrupt it under two processes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

from idumb.domain.errors import StoreError
from idumb.domain.event import GENESIS
from idumb.store import anchor, migrations
from idumb.system import folders

BUSY_SECONDS = 5.0
ATTEMPTS = 4
_WANTED_PRAGMAS = {"journal_mode": "truncate", "synchronous": 2, "trusted_schema": 0}

T = TypeVar("T")

# A connection that came through fork must not be closed by the child: closing could roll back the parent's work.
_inherited: list[sqlite3.Connection] = []


class Database:
    """`store.db` below `<common dir>/idumb`, opened at first use, again after a fork and after a failed write."""

    def __init__(self, common_dir: str) -> None:
        self.folder = os.path.join(common_dir, "idumb")
        self.path = os.path.join(self.folder, "store.db")
        self._anchor = os.path.join(self.folder, "anchor.json")
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.RLock()

    def read(self, query: Callable[[sqlite3.Connection], T], empty: T) -> T:
        """What `query` makes of the database; `empty` when there is none yet. Raises StoreError."""
        with self._lock, translated(self.path):
            connection = self._open(create=False)
            return empty if connection is None else query(connection)

    def write(self, transaction: Callable[[sqlite3.Connection], T]) -> T:
        """Run `transaction` inside BEGIN IMMEDIATE and commit it durably. When it returns, it has been forced to disk.

        Where another process is in the way it is run again from its start, so it must have no effect but the
        database's. Raises StoreError; then nothing of it is kept.
        """
        with self._lock, translated(self.path):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return self._once(transaction)
                except sqlite3.OperationalError as error:
                    if attempt == ATTEMPTS or not _is_busy(error):
                        raise
            raise AssertionError

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._forget()

    def set_anchor(self) -> None:
        """Record outside the database how far the log has come."""
        found = self.read(_head, (0, GENESIS))
        if found[0]:
            anchor.write(self._anchor, *found)

    def _once(self, transaction: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._open(create=True)
        assert connection is not None  # noqa: S101 - for the type checker; `create` leaves no other way
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = transaction(connection)
            connection.execute("COMMIT")
            return result
        except sqlite3.Error:
            # After a failed write only a fresh connection sees what is really on disk.
            self._forget()
            raise
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is not None and self._process != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = self._opened(create=create)
            self._process = os.getpid()
        return self._connection

    def _opened(self, *, create: bool) -> sqlite3.Connection | None:
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            if anchor.exists(self._anchor):
                raise _missing(self.path)
            if not create:
                return None
            _make_file(self.folder, self.path)
        connection = _connect(self.path)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        _set_pragmas(connection)
        known = migrations.version(connection)
        if known > migrations.CURRENT:
            raise _newer(self.path, known)
        if known < migrations.CURRENT:
            self._migrate(connection)
        self._check_anchor(connection)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        migrations.migrate(connection)
        connection.execute("COMMIT")
        if not anchor.exists(self._anchor):
            anchor.write(self._anchor, 0, GENESIS)

    def _check_anchor(self, connection: sqlite3.Connection) -> None:
        known = anchor.read(self._anchor)
        if known is None or known[0] == 0:
            return
        row = connection.execute("SELECT hash FROM events WHERE seq = ?", (known[0],)).fetchone()
        if row is None or row[0] != known[1]:
            raise _older(self.path, known[0])

    def _forget(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _connect(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    # mode=rw never creates; check_same_thread is off because `Database` serialises its callers itself.
    return sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _set_pragmas(connection: sqlite3.Connection) -> None:
    """Durability is a property of each connection, so it is set and read back on each."""
    for name, wanted in _WANTED_PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {wanted}")
        got = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if got != wanted and not _cannot_write(connection):
            raise StoreError("store.pragma", f"SQLite answers {name} = {got} where {wanted} is needed")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = 1")


def _cannot_write(connection: sqlite3.Connection) -> bool:
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    return not os.access(path, os.W_OK)


def _head(connection: sqlite3.Connection) -> tuple[int, str]:
    row = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


def _make_file(folder: str, path: str) -> None:
    folders.make_private(folder)
    # SQLite gives its journal the mode of the database, so the mode is set before SQLite sees the file.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: sqlite3.Error) -> int:
    """The primary result code; extended ones keep it in the low byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class translated(contextlib.AbstractContextManager[None]):  # noqa: N801 - used like a function
    """Turns what SQLite and the system say into StoreError, with the next step."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            _raise(self._path, error)
        if isinstance(error, UnicodeDecodeError):
            # SQLite's own messages quote the damaged text that they are about.
            raise StoreError("store.corrupt", f"the event log is damaged: {self._path}", hint=_BACKUP) from error
        if isinstance(error, OSError):
            raise StoreError("store.file", f"the event log cannot be used: {error}") from error


_BACKUP = "put a backup in its place"
_ANSWERS = {
    sqlite3.SQLITE_BUSY: ("store.busy", "another process holds the event log", "try again when it has ended"),
    sqlite3.SQLITE_LOCKED: ("store.busy", "another process holds the event log", "try again when it has ended"),
    sqlite3.SQLITE_FULL: ("store.full", "no space is left for the event log", "make room, then `idumb resume`"),
    sqlite3.SQLITE_READONLY: ("store.read-only", "the event log cannot be written", "check owner and mode of the file"),
    sqlite3.SQLITE_CORRUPT: ("store.corrupt", "the event log is damaged", _BACKUP),
    sqlite3.SQLITE_NOTADB: ("store.corrupt", "the event log is no SQLite database", _BACKUP),
    sqlite3.SQLITE_CONSTRAINT: ("store.refused", "the event log refused the write", None),
    sqlite3.SQLITE_IOERR: ("store.io", "the disk failed under the event log", "check the disk, then `idumb resume`"),
    sqlite3.SQLITE_CANTOPEN: ("store.file", "the event log cannot be opened", "check owner and mode of its folder"),
}


def _raise(path: str, error: sqlite3.Error) -> NoReturn:
    code, message, hint = _ANSWERS.get(_code(error), ("store.failed", "the event log failed", _BACKUP))
    raise StoreError(code, f"{message}: {path}: {error}", hint=hint, details={"path": path}) from error


def _newer(path: str, known: int) -> StoreError:
    return StoreError(
        "store.newer",
        f"the event log was written by a newer idumb (schema {known}, this one knows {migrations.CURRENT}): {path}",
        hint="install a newer idumb",
        details={"path": path, "schema": known, "known": migrations.CURRENT},
    )


def _missing(path: str) -> StoreError:
    return StoreError(
        "store.missing",
        f"the event log is gone or empty, though anchor.json beside it says that there was one: {path}",
        hint="put a backup of store.db in its place",
        details={"path": path},
    )


def _older(path: str, seq: int) -> StoreError:
    return StoreError(
        "store.older",
        f"the event log lacks event {seq} as anchor.json beside it knows it: an older or other copy: {path}",
        hint="put the newest copy of store.db in its place",
        details={"path": path, "seq": seq},
    )
