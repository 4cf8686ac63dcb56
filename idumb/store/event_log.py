"""The event log in SQLite: appended in single durable transactions, read in pages. And the files beside it.

A reader holds no lock between two pages, because a paused one would block writers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.app.ports import Clock, RunStart
from idumb.domain import canonical_json
from idumb.domain.action import Action
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs import event
from idumb.domain.runs.event import GENESIS, ChainCheck, Event, NewEvent
from idumb.store import backups, connection, event_chain
from idumb.store.connection import Database
from idumb.store.event_chain import COLUMNS, Row
from idumb.system import atomic_write, private_folders
from idumb.system.redaction import Redactor

PAGE = 500
_LAST = 2**63 - 1
_STARTED = "run.started"
_ENDS = frozenset({"task.completed", "task.failed", "task.accepted", "task.skipped"})
_STOPS = frozenset(
    {
        "run.completed", "run.failed", "run.halted", "run.interrupted", "run.paused", "rollback.completed",
        "undo.completed", "doctor.fixed", "log.restored", "log.archived",
    }
)  # fmt: skip
BACKUP_EVERY = 20
"""After this many tasks of one command, the log is copied to the state directory; also after a command with a stop."""
INSERT = f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_INSERT_RUN = f"INSERT INTO runs ({event_chain.RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_LAST_RUN = "SELECT position, hash FROM runs ORDER BY position DESC LIMIT 1"
_EVENTS = f"SELECT {COLUMNS} FROM events WHERE run = ? ORDER BY seq"  # noqa: S608
_DELETE = "DELETE FROM events WHERE run = ? AND kind NOT IN (?, ?, ?)"
_STARTS = "SELECT id, phase, worktree, started_seq FROM runs ORDER BY position"
_KEY = re.compile(r"[a-z][a-z_]{0,19}|T[0-9A-Za-z][0-9A-Za-z._-]*-[0-9]{2,}[a-z]?")  # a field or a task


class SqliteEventLog:
    """The event log and its index of runs. Nothing is created on disk before the first `append`."""

    def __init__(
        self,
        database: Database,
        worktree: str,
        clock: Clock,
        *,
        owner: str | None = None,
        redactor: Callable[[], Redactor] = Redactor,
    ) -> None:
        """`worktree` names the project; `owner` the working tree, whose fencing token counts (default: `worktree`).

        `redactor` removes known secrets from every payload before it is stored.
        """
        self.database = database
        self._worktree = worktree
        self._owner = owner or worktree
        self._clock = clock
        self._redactor = redactor
        self._ended = 0

    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        """Append in one durable transaction.

        StoreError `store.fence` if `fence` is not this working tree's current one.

        `expected` is the newest event of the run that the caller knows; Refusal `run.moved-on` if there are later ones.
        The returned payloads have been through JSON, so they equal what a later replay reads.
        """
        if not events:
            return ()
        payloads = _payloads(events, self._redactor())
        encoded = tuple(zip(events, payloads, strict=True))
        rows = self.database.write(functools.partial(self._insert, encoded, operation, fence, expected))
        kinds = [new.kind for new in events]
        self.database.backup_is_due |= not _STOPS.isdisjoint(kinds)
        if not _ENDS.isdisjoint(kinds):
            self._ended += sum(kind in _ENDS for kind in kinds)
            self.database.record_newest(back_up=self._ended % BACKUP_EVERY == 0)
        return tuple(event_chain.events(rows))

    def events(
        self,
        *,
        run: str | None = None,
        task: str | None = None,
        kind: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]:
        """Yield the events that match every filter, by sequence number.

        `since` is inclusive, `after` is not.

        Reads a page at a time, so that a slow reader never blocks a writer.
        """
        # The plus keeps SQLite from taking another index than that of the run, or sorting by the one of the time.
        weak = "" if run is None else "+"
        filters = {
            "run = ?": run,
            "task = ?": task,
            f"{weak}kind = ?": kind,
            f"{weak}operation = ?": operation,
            "+at >= ?": since,
        }
        chosen = {condition: value for condition, value in filters.items() if value is not None}
        for page in self._pages(chosen, self._before(since, after), limit, newest_first=newest_first):
            for row in page:
                why = event_chain.own_fault(row)
                if why is not None:
                    raise connection.corrupt(self.database.path, why)
            yield from event_chain.events(page)

    def _before(self, since: str | None, after: int) -> int:
        """Return the number after which to start. The clock may have gone back, so times alone are not enough."""
        # Without the plus, SQLite searches the minimum row by row from the first event, past the time index.
        rows = [] if since is None else self.database.rows("SELECT MIN(+seq) FROM events WHERE at >= ?", (since,))
        return max(after, rows[0][0] - 1) if rows and rows[0][0] is not None else after

    def _pages(
        self, chosen: Mapping[str, str], after: int, limit: int | None, *, newest_first: bool
    ) -> Iterator[list[Row]]:
        """Yield rows in the order of COLUMNS, never an empty page."""
        conditions, order = " AND ".join([*chosen, "seq > ?", "seq < ?"]), "DESC" if newest_first else "ASC"
        query = f"SELECT {COLUMNS} FROM events WHERE {conditions} ORDER BY seq {order} LIMIT ?"  # noqa: S608
        lower, upper, remaining = after, _LAST, _LAST if limit is None else limit
        while remaining > 0:
            size = min(PAGE, remaining)
            page = self.database.rows(query, (*chosen.values(), lower, upper, size))
            if page:
                yield page
            if len(page) < size:
                return
            remaining -= size
            lower, upper = (lower, page[-1][0]) if newest_first else (page[-1][0], upper)

    def head(self) -> tuple[int, str]:
        """(last sequence number, its hash); (0, GENESIS) if the log is empty."""
        return self.database.read(connection.head, (0, GENESIS))

    def verify(self) -> ChainCheck:
        """Recompute every hash and follow the chain of every run, archived ones included.

        StoreError `store.corrupt` if the file is damaged, which can hide events from index queries.
        """
        try:
            chain = self.database.read(lambda db: backups.verified(db, self.database.folder), ChainCheck(0, GENESIS))
        except StoreError:
            chain = backups.check(self.database.path, self.database.folder)
            if chain.head and chain.broken_at is not None:
                return chain  # what can be read of it says more than that it is damaged
            raise
        if not chain.head:
            raise connection.corrupt(self.database.path, chain.why)
        newest = self.database.backups.newest() if chain.count else None
        return replace(chain, witnessed=min(chain.count, newest.seq if newest else 0))

    def latest_run(self, phase: str) -> str | None:
        """Id of the newest run of a phase in this working tree. A run is found without a replay."""
        query = "SELECT id FROM runs WHERE phase = ? AND worktree = ? ORDER BY started_seq DESC LIMIT 1"
        rows = self.database.rows(query, (phase, self._worktree))
        return rows[0][0] if rows else None

    def last_number(self, phase: str) -> int:
        """Number runs per working tree: two that start at once must not get the same number and id."""
        query = "SELECT MAX(number) FROM runs WHERE phase = ? AND worktree = ?"
        rows = self.database.rows(query, (phase, self._worktree))
        return (rows[0][0] or 0) if rows else 0

    def phases(self) -> tuple[str, ...]:
        """Return the phases that were run in this working tree, in the order of their first run."""
        query = "SELECT phase FROM runs WHERE worktree = ? GROUP BY phase ORDER BY MIN(started_seq)"
        return tuple(row[0] for row in self.database.rows(query, (self._worktree,)))

    def _insert(
        self,
        encoded: Sequence[tuple[NewEvent, str]],
        operation: str,
        fence: int,
        expected: int | None,
        db: sqlite3.Connection,
    ) -> list[Row]:
        _require_fence(db, self._owner, fence)
        if expected is not None:
            _require_newest(db, encoded[0][0].run, expected)
        seq, _ = connection.head(db)
        for place, (new, _text) in enumerate(encoded, seq + 1):
            if new.kind == _STARTED:
                run = (new.run, new.payload["phase"], self._worktree, new.payload["number"], place)
                position, previous = db.execute(_LAST_RUN).fetchone() or (0, GENESIS)
                db.execute(_INSERT_RUN, event_chain.run_row(position + 1, run, previous))
        heads = {run: self._head_of(db, run) for run in {new.run for new, _ in encoded}}
        rows = event_chain.chain(encoded, seq, heads, operation=operation, fence=fence, at=self._clock.now())
        db.executemany(INSERT, rows)
        return rows

    def _head_of(self, db: sqlite3.Connection, run: str | None) -> str:
        """Return what the next event of a run is chained to. StoreError if its last event is not as it was written."""
        last = db.execute(f"SELECT {COLUMNS} FROM events WHERE run IS ? ORDER BY seq DESC LIMIT 1", (run,)).fetchone()  # noqa: S608
        if last is None:
            started = db.execute("SELECT hash FROM runs WHERE id = ?", (run,)).fetchone()
            return GENESIS if started is None else str(started[0])
        why = event_chain.own_fault(last)
        if why is not None:
            raise connection.corrupt(self.database.path, why)
        return str(last[event_chain.HASH])


def _payloads(events: Sequence[NewEvent], redactor: Redactor) -> list[str]:
    """Return the canonical text of each payload, without known secrets."""
    for new in events:
        if new.kind not in event.KINDS:
            raise ValueError(f"no such kind of event: {new.kind}")
    texts = [canonical_json.encode(dict(new.payload)).decode("ascii") for new in events]
    # Most events hold no secret, so that one scan of all of them is enough.
    if not redactor.holds("\n".join(texts)):
        return texts
    return [_redacted(new, redactor) if redactor.holds(text) else text for new, text in zip(events, texts, strict=True)]


def _redacted(new: NewEvent, redactor: Redactor) -> str:
    clean = {
        name: value if name in event.EXACT else _clean(name, value, redactor) for name, value in new.payload.items()
    }
    return canonical_json.encode(clean).decode("ascii")


def _clean(name: str, value: Any, redactor: Redactor) -> Any:
    """Redact a field. Field names, task ids and identifiers stay unchanged."""
    if isinstance(value, Mapping):
        return {
            key if _KEY.fullmatch(key) else redactor.value(key): _clean(key, item, redactor)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean(name, item, redactor) for item in value]
    return value if name in event.IDENTITY else redactor.value(value)


def _require_newest(db: sqlite3.Connection, run: str | None, expected: int) -> None:
    beside = ", ".join("?" * len(event.BESIDE))
    query = f"SELECT seq FROM events WHERE run = ? AND kind NOT IN ({beside}) ORDER BY seq DESC LIMIT 1"  # noqa: S608
    row = db.execute(query, (run, *event.BESIDE)).fetchone()
    newest = row[0] if row else 0
    if newest > expected:
        raise Refusal(
            "run.moved-on",
            "Another idumb process has continued this run.",
            hint=Action("status"),
            details={"known": expected, "newest": newest},
        )


def _require_fence(db: sqlite3.Connection, worktree: str, fence: int) -> None:
    row = db.execute("SELECT fence FROM owners WHERE worktree = ?", (worktree,)).fetchone()
    current = row[0] if row else None
    if current != fence:
        raise StoreError(
            "store.fence",
            f"another idumb has taken over this working tree (fencing token {current}, this one has {fence})",
            hint=Action("status"),
            details={"fence": fence, "current": current},
        )


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Refuse if the file of a backup cannot be written, which says nothing about the log."""
    try:
        yield
    except FileExistsError:
        raise Refusal("backup.exists", f"{path} already exists.", hint="choose another name") from None
    except (OSError, sqlite3.Error) as problem:
        words = f"{path} cannot be written: {getattr(problem, 'strerror', None) or problem}"
        raise Refusal(
            "backup.not-written", words, hint="choose a folder that you can write, with enough space"
        ) from problem


class SqliteLogFiles:
    """Backups that a person asks for, archived runs and transcripts; and the list of all runs."""

    def __init__(self, database: connection.Database) -> None:
        self._database = database

    def back_up(self, path: str) -> tuple[int, str]:
        """Write the database to a new file, forced to disk, and check it. Return number and hash of its last event.

        Refusal `backup.exists` if the name is taken.
        """
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise Refusal("backup.no-folder", f"There is no folder {folder}.", hint=f"mkdir -p {shlex.quote(folder)}")
        part = f"{path}.{os.getpid()}.part"

        def copy(db: sqlite3.Connection) -> None:
            with _writing(path):
                backups.copy(db, part)

        try:
            self._database.write(lambda _: None)  # a log without any event has a backup too
            self._database.read(copy, None)
            chain = backups.check(part, self._database.folder)
            if chain.broken_at is not None:
                raise connection.corrupt(self._database.path, chain.why)
            with _writing(path):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
                os.rename(part, path)
                atomic_write.sync_folder(folder)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(part)
        return chain.count, chain.head

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Recompute every hash, and return whether the log of this repository has the backup's newest event."""
        if not os.path.isfile(path):
            raise Refusal("backup.missing", f"There is no file {path}.", hint=Action.of("backup", path))
        chain = backups.check(path, self._database.folder)
        if not chain.head:
            hint = "the file is damaged or is not a backup; idumb backup FILE writes another one"
            raise StoreError("store.corrupt", f"{path} cannot be read as a backup: {chain.why}", hint=hint)
        own = self._database.rows(event_chain.ROW, (chain.count,))
        return chain, bool(own) and own[0][event_chain.HASH] == chain.head

    def starts(self) -> list[RunStart]:
        """Return how every run of the repository started, oldest first."""
        return [RunStart(*row) for row in self._database.rows(_STARTS)]

    def archived(self) -> list[dict[str, Any]]:
        """Return run, events, first, last, head and file of each archived run."""
        return self._database.read(backups.archived_runs, list[dict[str, Any]]())

    def pack(self, run: str) -> dict[str, Any]:
        """Write the file of a finished run. Return the payload of its last event `log.archived`, before `remove`."""
        with connection.translated(self._database.path):
            record = backups.archive(self._database.folder, self._database.rows(_EVENTS, (run,)))
        if record is None:
            raise connection.corrupt(self._database.path, f"the events of run {run} are not as they were written")
        return record

    def remove(self, runs: Sequence[str]) -> None:
        """Remove the events of archived runs from the database. If it is killed, a later call continues."""

        def delete(db: sqlite3.Connection) -> None:
            db.executemany(_DELETE, [(run, *event.KEPT_OF_ARCHIVED) for run in runs])

        if runs:
            self._database.write(delete)
            with contextlib.suppress(StoreError):
                self._database.read(lambda db: db.execute("VACUUM"), None)

    def forget_transcripts(self, run: str, worktree: str) -> None:
        """Remove what the agents of a run did. A missing folder is not an error."""
        place = os.path.join(self._database.folder, "worktrees", worktree, "transcripts", run)
        private_folders.try_to_remove(place)
