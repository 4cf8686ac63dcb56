"""The one place that opens the database, and puts its problems in words, with the next step.

Reading never creates anything; every write is one immediate transaction.

It uses a rollback journal instead of a write-ahead log: losing a WAL file loses acknowledged events while every
integrity check still passes, and older SQLite libraries can corrupt a WAL with two processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from idumb.domain import paths
from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.store import backups, event_chain
from idumb.store.backups import LogBackups, Newest
from idumb.store.event_chain import Row
from idumb.system import machine, private_folders

BUSY_SECONDS = 20.0
LIMIT = 16 * 1024 * 1024
"""Of databases up to this many bytes, the tables and the links of events are checked when they are opened."""
_WANTED_PRAGMAS = {"journal_mode": "truncate", "synchronous": 2, "trusted_schema": 0}

_FIX = "idumb doctor --fix"
_GONE = "is gone or empty, though there was one"
_LATER = "retry when it has ended"
_LOOK = "check the owner, mode and free space of that folder, then run the command again"
_ANSWERS = {
    sqlite3.SQLITE_BUSY: ("store.busy", "another process holds the event log", _LATER),
    sqlite3.SQLITE_LOCKED: ("store.busy", "another process holds the event log", _LATER),
    sqlite3.SQLITE_FULL: (
        "store.full",
        "no space is left for the event log",
        "free disk space, then run: idumb resume",
    ),
    sqlite3.SQLITE_READONLY: ("store.read-only", "the event log cannot be written", "check owner and mode of the file"),
    sqlite3.SQLITE_CORRUPT: ("store.corrupt", "the event log is damaged", _FIX),
    sqlite3.SQLITE_NOTADB: ("store.corrupt", "the event log is not an SQLite database", _FIX),
    sqlite3.SQLITE_CONSTRAINT: ("store.refused", "the event log refused the write", None),
    sqlite3.SQLITE_IOERR: ("store.io", "the disk failed under the event log", "check the disk, then run: idumb resume"),
    sqlite3.SQLITE_CANTOPEN: ("store.file", "the event log cannot be opened", "check owner and mode of its folder"),
}

T = TypeVar("T")


class Database:
    """`store.db` below `<common dir>/idumb`, opened on first use, and again after a failed write."""

    def __init__(
        self,
        common_dir: str,
        kept_refs: Callable[[], bool] = lambda: False,
        may_create: Callable[[str], None] = lambda _: None,
        *,
        backed_up: bool = True,
    ) -> None:
        """`kept_refs` tells whether refs/idumb holds anything; `may_create` raises if no log may be created.

        The state directory knows nothing of a log that is not `backed_up`.
        """
        self.folder = os.path.join(common_dir, "idumb")
        self.path = os.path.join(self.folder, "store.db")
        self._common_dir = common_dir
        self._kept_refs = kept_refs
        self._may_create = may_create
        self._backed_up = backed_up
        self._unsaved = False
        self.backup_is_due = False
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self._lock = threading.RLock()
        # Called in each write's transaction; raises once the owner has lost the working tree.
        self.guard: Callable[[], None] = lambda: None

    @cached_property
    def backups(self) -> LogBackups:
        return LogBackups(self._common_dir)

    def read(self, query: Callable[[sqlite3.Connection], T], empty: T) -> T:
        """Return the result of `query`, or `empty` if there is no database yet. Raises StoreError."""
        with self._lock, translated(self.path):
            connection = self._open(create=False)
            return empty if connection is None else query(connection)

    def rows(self, query: str, arguments: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query; none if there is no database yet."""
        return self.read(lambda db: db.execute(query, arguments).fetchall(), list[Row]())

    def write(self, transaction: Callable[[sqlite3.Connection], T]) -> T:
        """Run `transaction` inside BEGIN IMMEDIATE and commit it durably: on return it is on disk.

        SQLite waits for other processes. Raises StoreError; then nothing is stored.
        """
        with self._lock, translated(self.path):
            connection = self._open(create=True)
            assert connection is not None  # noqa: S101 - for the type checker; `create` leaves no other way
            try:
                connection.execute("BEGIN IMMEDIATE")
                self.guard()
                result = transaction(connection)
                connection.execute("COMMIT")
                self._unsaved = True
                return result
            except sqlite3.Error:
                # After a failed write, only a fresh connection sees what is really on disk.
                self._forget()
                raise
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            self._forget()

    def record_newest(self, *, back_up: bool) -> None:
        """Record in the state directory how far the log has come. With `back_up`, copy the log there too.

        Without any copy, as in a repository that was moved, one is made.

        A failure does not fail the caller: the log has the events, and the next call catches up.
        """
        if not self._backed_up or not self._unsaved:
            return
        with contextlib.suppress(OSError, StoreError):
            newest = self.read(self._newest, None)
            if newest is not None and newest.seq:
                self.backups.record(newest)
                if back_up or not self.backups.paths():
                    self.read(lambda db: self.backups.back_up(db, newest.seq), None)
                    self._unsaved = self.backup_is_due = False

    def _newest(self, connection: sqlite3.Connection) -> Newest:
        fence = connection.execute("SELECT MAX(fence) FROM owners").fetchone()[0]
        return Newest(*head(connection), _inode(self.folder), fence or 0)

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is not None and _inode(self.path) != self._file:
            # Another file took its place, for example by `idumb doctor --fix`; stop writing to the old one.
            self._forget()
        if self._connection is None:
            self._connection = self._opened(create=create)
            self._file = _inode(self.path)
        return self._connection

    def _opened(self, *, create: bool) -> sqlite3.Connection | None:
        if self._is_absent() and not self._was_made_meanwhile():
            if not create:
                return None
            self._begin()
        connection = _connect(self.path)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        if create and self._backed_up and (why := self.backups.problem()) is not None:
            raise StoreError(
                "store.unsafe",
                f"the backups of the event log in the state directory cannot be trusted: {why}",
                hint="make the folder private (owned by you, mode 0700)",
            )
        return connection

    def _is_absent(self) -> bool:
        return not os.path.exists(self.path) or not os.path.getsize(self.path)

    def _was_made_meanwhile(self) -> bool:
        """Return whether another process created the log. StoreError `store.missing` if it is gone."""
        try:
            self._require_new()
        except StoreError:
            if self._is_absent():
                raise
            return True
        return False

    def _require_new(self) -> None:
        """Require that nothing knows of an earlier log, so that a new one may be created."""
        if self._kept_refs():
            raise unusable("store.missing", f"{_GONE}: refs/idumb in the repository holds what it recorded", self.path)
        newest = self._recorded()
        if newest is not None and newest.folder == _inode(self.folder):
            raise unusable("store.missing", f"{_GONE}: the state directory knows it", self.path)

    def _recorded(self) -> Newest | None:
        return self.backups.newest() if self._backed_up else None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        _set_pragmas(connection, self.path)
        version = event_chain.version(connection)
        if version not in (0, event_chain.CURRENT):
            words = f"has schema {version}, and this idumb knows only {event_chain.CURRENT}"
            hint, known = "install the version of idumb that wrote it", event_chain.CURRENT
            raise unusable("store.schema", words, self.path, hint, schema=version, known=known)
        if not version:
            self._create_tables(connection)
        elif os.path.getsize(self.path) <= LIMIT:
            connection.execute("BEGIN")  # another process may write meanwhile, or archive a run
            if (why := backups.unsound(connection)) is not None:
                raise corrupt(self.path, why)
            connection.execute("COMMIT")
        self._require_newest(connection)

    def _require_newest(self, connection: sqlite3.Connection) -> None:
        """StoreError `store.older` or `store.diverged` if the state directory knows a later or another history."""
        newest = self._recorded()
        if newest is None or not newest.seq:
            return
        if head(connection)[0] < newest.seq:
            words = f"lacks event {newest.seq}, which the state directory knows; this is an older copy of it"
            raise unusable("store.older", words, self.path, seq=newest.seq)
        row = connection.execute(event_chain.ROW, (newest.seq,)).fetchone()
        if row is not None and row[event_chain.HASH] != newest.hash:  # it may have been archived
            fault = event_chain.own_fault(row)
            if fault:
                raise corrupt(self.path, fault)
            words = f"has another event {newest.seq} than the state directory knows, so it is another log"
            here, copies = shlex.quote(self.path), [*map(shlex.quote, self.backups.paths())]
            hint = f"mv {here} {here}.other && cp -p {copies[0]} {here}" if copies else "put the right log in place"
            raise unusable("store.diverged", words, self.path, hint, seq=newest.seq)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created the tables while this one waited.
        if event_chain.version(connection) == 0:
            self._require_new()
        event_chain.create(connection)
        connection.execute("COMMIT")
        if self._backed_up and self.backups.newest() is None:
            with contextlib.suppress(OSError):
                self.backups.record(Newest(0, GENESIS, _inode(self.folder), 0))

    def _begin(self) -> None:
        """Make an empty file. StoreError if no log may be created here."""
        self._may_create(self.folder)
        private_folders.make(self.folder, root=self._common_dir)
        if self._recorded() is not None:
            # Neither refs nor the same folder: another repository replaced one that idumb knew.
            with contextlib.suppress(OSError):
                backups.set_aside(self.backups.folder, "kept")
        # SQLite gives its journal the mode of the database, so set the mode before SQLite sees the file.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))

    def _forget(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _connect(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    # mode=rw never creates; check_same_thread is off because `Database` serialises its callers.
    return sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _set_pragmas(connection: sqlite3.Connection, path: str) -> None:
    """Set durability and read it back: it is a property of each connection."""
    for name, expected in _WANTED_PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {expected}")
        got = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if got != expected and os.access(path, os.W_OK):
            raise StoreError("store.pragma", f"SQLite reports {name} = {got}, but {expected} is required")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = 1")


def head(connection: sqlite3.Connection) -> tuple[int, str]:
    """Return (last sequence number, its hash); (0, GENESIS) if the log is empty."""
    row = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (int(row[0]), str(row[1]))


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def refuse_network(folder: str, allowed: Callable[[], bool]) -> None:
    """Refuse a folder on a network file system, unless that is `allowed`: locks and fsync may not work there."""
    kind = machine.kind_of(folder)
    if paths.is_network_file_system(kind) and not allowed():
        raise StoreError(
            "store.network",
            f"the event log would be on a network file system ({kind}), where locks and forced writes are not reliable:"
            f" {folder}",
            hint="Keep the repository on a local disk, or set git.network in .idumb/config.yaml",
            details={"path": folder, "kind": kind},
        )


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise StoreError, with the next step, in place of errors of SQLite and the system."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise _translate(path, error) from error


def _translate(path: str, error: Exception) -> StoreError:
    if isinstance(error, UnicodeDecodeError):
        return corrupt(path, "its text is unreadable")  # SQLite's own messages quote the damaged text
    if isinstance(error, OSError):
        space_note = machine.described(path) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        message = f"the event log cannot be used: {error.strerror or error}: {error.filename or path}{space_note}"
        return StoreError("store.file", message, hint=_LOOK, details={"path": path})
    # SQLite's primary result code is the low byte of an extended one.
    code, message, hint = _ANSWERS.get(
        getattr(error, "sqlite_errorcode", 0) & 0xFF, ("store.failed", "the event log failed", _FIX)
    )
    space_note = machine.described(path) if code == "store.full" else ""
    if code == "store.file" and (space_note := machine.nearly_full(path)):
        code, _, hint = _ANSWERS[sqlite3.SQLITE_FULL]
    return StoreError(code, f"{message}: {path}: {error}{space_note}", hint=hint, details={"path": path})


def corrupt(path: str, why: str) -> StoreError:
    return unusable("store.corrupt", f"is damaged: {why}", path)


def unusable(code: str, words: str, path: str, hint: str = _FIX, **details: Any) -> StoreError:
    """Return why the event log at a path is not used; `words` follow its name."""
    return StoreError(code, f"the event log {words}: {path}", hint=hint, details={"path": path, **details})
