"""The one place that opens the database. Reading never creates anything; every write is one immediate transaction.

It uses a rollback journal instead of a write-ahead log: losing a WAL file loses acknowledged events while every
integrity check still passes, and older SQLite libraries can corrupt a WAL with two processes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from idumb.domain import paths
from idumb.domain.errors import StoreError
from idumb.store import anchor, event_chain, log_errors, schema, segments
from idumb.store.event_chain import Line, Placed, Row
from idumb.store.witnesses import AnchoredCopy, Witnesses, nothing_kept
from idumb.system.files import file_systems, private_folders

BUSY_SECONDS = 5.0
ATTEMPTS = 4
_PAGE = 500
_PLACED = (
    f"SELECT {event_chain.COLUMNS}, (SELECT worktree FROM runs WHERE id = events.run) FROM events"  # noqa: S608
    f" WHERE seq > ? ORDER BY seq LIMIT {_PAGE}"
)
_NOTHING: list[Row] = []
_WANTED_PRAGMAS = {"journal_mode": "truncate", "synchronous": 2, "trusted_schema": 0}

T = TypeVar("T")

# After a fork the child must not close the connection: closing could roll back the parent's work.
_inherited: list[sqlite3.Connection] = []


class Database:
    """`store.db` below `<common dir>/idumb`, opened on first use, and again after a fork or a failed write."""

    def __init__(
        self,
        common_dir: str,
        kept_refs: Callable[[], bool] = nothing_kept,
        may_create: Callable[[str], None] | None = None,
        *,
        copied: bool = True,
    ) -> None:
        """`kept_refs` tells whether refs/idumb holds anything; `may_create` raises if no log may be created.

        A log that is not `copied` has no copy in the user's state directory.
        """
        self.folder = os.path.join(common_dir, "idumb")
        self.path = os.path.join(self.folder, "store.db")
        self._common_dir = common_dir
        self.kept_refs = kept_refs
        self._may_create = may_create
        self._copied = copied
        self._anchor = os.path.join(self.folder, "anchor.json")
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._file = 0
        self._lock = threading.RLock()
        # Called in each write's transaction; raises once the owner has lost the working tree.
        self.guard: Callable[[], None] = lambda: None

    @cached_property
    def witnesses(self) -> Witnesses:
        copy = AnchoredCopy(self._common_dir)
        return Witnesses(self.path, self._anchor, copy, self.kept_refs, copied=self._copied)

    def read(self, query: Callable[[sqlite3.Connection], T], empty: T) -> T:
        """Return the result of `query`, or `empty` if there is no database yet. Raises StoreError."""
        with self._lock:
            try:
                connection = self._open(create=False)
                return empty if connection is None else query(connection)
            except log_errors.RAW as error:
                raise log_errors.translate(self.path, error) from error

    def rows(self, query: str, arguments: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query; none if there is no database yet."""
        return self.read(lambda db: db.execute(query, arguments).fetchall(), _NOTHING)

    def write(self, transaction: Callable[[sqlite3.Connection], T]) -> T:
        """Run `transaction` inside BEGIN IMMEDIATE and commit it durably: on return it is on disk.

        If another process interferes, the transaction is repeated from its start, so it must not have effects outside
        the database. Raises StoreError; then nothing is stored.
        """
        with self._lock:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return self._once(transaction)
                except log_errors.RAW as error:
                    if attempt == ATTEMPTS or not log_errors.is_busy(error):
                        raise log_errors.translate(self.path, error) from error
            raise AssertionError

    def close(self) -> None:
        with self._lock:
            self._forget()

    def set_anchor(self) -> None:
        """Record outside the database, in both places, how far the log has come, and force that to disk."""
        present = self.read(anchor.describe, anchor.Anchor())
        if present.seq:
            anchor.write(self._anchor, present)
            self.follow([])
            with contextlib.suppress(OSError):
                self.witnesses.copy.sync()

    def follow(self, lines: Sequence[Line]) -> None:
        """Append the new events, and any missing ones, to the copy in the state directory.

        A failure does not fail the caller: the log has the events, and the copy catches up at the next write.
        """
        with contextlib.suppress(OSError, StoreError):
            witnesses = self.witnesses
            if witnesses.trusted() and not witnesses.copy.follow(lines, self._missed):
                # A copy that does not match is set aside, and the log, if sound, makes a new one.
                self.read(witnesses.require_newest, None)
                witnesses.copy.set_aside()
                witnesses.copy.follow([], self._missed)

    def _missed(self, seq: int, head: str) -> Iterable[Line] | None:
        """Return the events after number `seq`; None if the log has a different event there.

        Stops where the chain breaks.
        """
        if seq and self.read(lambda db: segments.hash_at(db, seq), None) not in (head, None):
            return None
        return _sound_lines(self.placed(after=seq), seq, head)

    def placed(self, after: int = 0) -> Iterator[Placed]:
        """Yield every event after a number with the working tree of its run, including segments, a page at a time."""
        none: tuple[segments.Segment, ...] = ()
        for segment in self.read(segments.listed, none):
            if segment.last > after:
                yield from (p for p in segments.placed(self.folder, segment) if p[0][event_chain.SEQ] > after)
                after = segment.last
        while page := self.rows(_PLACED, (after,)):
            yield from ((row[:-1], row[-1]) for row in page)
            after = page[-1][event_chain.SEQ]

    def _once(self, transaction: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._open(create=True)
        assert connection is not None  # noqa: S101 - for the type checker; `create` leaves no other way
        try:
            connection.execute("BEGIN IMMEDIATE")
            self.guard()
            result = transaction(connection)
            connection.execute("COMMIT")
            return result
        except sqlite3.Error:
            # After a failed write, only a fresh connection sees what is really on disk.
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
        if self._connection is not None and _inode(self.path) != self._file:
            # Another file took its place, for example by `idumb doctor --fix`; stop writing to the old one.
            self._forget()
        if self._connection is None:
            self._connection = self._opened(create=create)
            self._process, self._file = os.getpid(), _inode(self.path)
        return self._connection

    def _opened(self, *, create: bool) -> sqlite3.Connection | None:
        if self._is_absent():
            if not os.path.isdir(self._common_dir):
                return None
            if not self._was_made_meanwhile():
                if not create:
                    return None
                self._begin()
                _make_file(self.folder, self.path)
        connection = _connect(self.path)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        if create and self._copied and (why := self.witnesses.copy.problem()) is not None:
            raise StoreError(
                "store.unsafe",
                f"the copy of the event log in the state directory cannot be trusted: {why}",
                hint="make the folder private (owned by you, mode 0700)",
            )
        return connection

    def _is_absent(self) -> bool:
        return not os.path.exists(self.path) or not os.path.getsize(self.path)

    def _was_made_meanwhile(self) -> bool:
        """Return whether another process created it before leaving a witness.

        StoreError if a witness exists but no log.
        """
        try:
            self.witnesses.require_none()
        except StoreError:
            if self._is_absent():
                raise
            return True
        return False

    def _prepare(self, connection: sqlite3.Connection) -> None:
        _set_pragmas(connection)
        version = schema.version(connection)
        if version not in (0, schema.CURRENT):
            raise StoreError(
                "store.schema",
                f"the event log has schema {version}, and this idumb knows only {schema.CURRENT}: {self.path}",
                hint="install the version of idumb that wrote it",
                details={"path": self.path, "schema": version, "known": schema.CURRENT},
            )
        if version:
            self.witnesses.require_sound(connection)
        else:
            self._create_tables(connection)
        self.witnesses.require_newest(connection)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created the tables while this one waited.
        if schema.version(connection) == 0:
            self.witnesses.require_none()
        schema.create(connection)
        connection.execute("COMMIT")
        if not os.path.exists(self._anchor):
            anchor.write(self._anchor, anchor.Anchor())

    def _begin(self) -> None:
        """Raises StoreError if no log may be created here."""
        if self._may_create is not None:
            self._may_create(self.folder)
        copy = self.witnesses.copy
        if self.witnesses.trusted() and os.path.exists(copy.path):
            # Neither anchor nor refs: a different repository replaced one that idumb knew.
            with contextlib.suppress(OSError):
                copy.set_aside()

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


def _set_pragmas(connection: sqlite3.Connection) -> None:
    """Set durability and read it back: it is a property of each connection."""
    for name, expected in _WANTED_PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {expected}")
        got = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if got != expected and not _cannot_write(connection):
            raise StoreError("store.pragma", f"SQLite reports {name} = {got}, but {expected} is required")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = 1")


def _cannot_write(connection: sqlite3.Connection) -> bool:
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    return not os.access(path, os.W_OK)


def _sound_lines(rows: Iterable[Placed], seq: int, previous: str) -> Iterator[Line]:
    for row, worktree in rows:
        if event_chain.fault(row, seq + 1, previous) is not None:
            return
        yield event_chain.line(row, worktree), row
        seq, previous = row[event_chain.SEQ], row[event_chain.HASH]


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def refuse_network(
    folder: str, allowed: Callable[[], bool], kind_of: Callable[[str], str] = file_systems.kind_of
) -> None:
    """Refuse a folder on a network file system, unless that is `allowed`: locks and fsync may not work there."""
    kind = kind_of(folder)
    if paths.is_network_file_system(kind) and not allowed():
        raise StoreError(
            "store.network",
            f"the event log would be on a network file system ({kind}), where locks and forced writes are not reliable:"
            f" {folder}",
            hint="Keep the repository on a local disk, or set git.network in .idumb/config.yaml",
            details={"path": folder, "kind": kind},
        )


def _make_file(folder: str, path: str) -> None:
    private_folders.make(folder)
    # SQLite gives its journal the mode of the database, so set the mode before SQLite sees the file.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
