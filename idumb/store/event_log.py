"""The event log in SQLite: appended in single durable transactions, read in pages.

A reader holds no lock between two pages, because a paused one would block writers.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.app.ports.host import Clock
from idumb.domain import canonical_json
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs.event import BESIDE, EXACT, GENESIS, IDENTITY, KINDS, ChainCheck, Event, NewEvent
from idumb.lazy_dataclass import dataclass
from idumb.store import event_chain, log_errors, segments
from idumb.store.connection import Database
from idumb.store.event_chain import COLUMNS, Row
from idumb.store.witnesses import nothing_kept
from idumb.system.redaction import Redactor

PAGE = 500
_LAST = 2**63 - 1
_STARTED = "run.started"
_WIDE = frozenset({"kind", "operation"})
_KEY = lazy_pattern.compile(r"[a-z][a-z_]{0,19}|T[0-9A-Za-z][0-9A-Za-z._-]*-[0-9]{2,}[a-z]?")  # a field or a task


@dataclass(frozen=True, slots=True)
class _Where:
    """`equal` maps columns to values; `since` and `until` are inclusive times, `after` an exclusive number."""

    equal: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None
    after: int = 0


class SqliteEventLog:
    """The event log and its index of runs. Nothing is created on disk before the first `append`."""

    def __init__(
        self,
        common_dir: str,
        worktree: str,
        clock: Clock,
        *,
        owner: str | None = None,
        kept_refs: Callable[[], bool] = nothing_kept,
        may_create: Callable[[str], None] | None = None,
        redactor: Callable[[], Redactor] | None = None,
        copied: bool = True,
    ) -> None:
        """`worktree` names the project; `owner` the working tree, whose fencing token counts (default: `worktree`).

        `kept_refs` tells whether refs/idumb holds anything; `may_create` raises if no log may be created.

        `redactor` removes known secrets from every payload before it is stored. A log that is not `copied` has no copy
        in the user's state directory.
        """
        self.database = Database(common_dir, kept_refs, may_create, copied=copied)
        self._worktree = worktree
        self._owner = owner or worktree
        self._clock = clock
        self._redactor = redactor

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
        payloads = _payloads(events, None if self._redactor is None else self._redactor())
        encoded = tuple(zip(events, payloads, strict=True))
        rows = self.database.write(functools.partial(self._insert, encoded, operation, fence, expected))
        written = tuple(event_chain.events(rows))
        self.database.follow([(event_chain.line(row, self._worktree), row) for row in rows])
        return written

    def events(
        self,
        *,
        run: str | None = None,
        task: str | None = None,
        kind: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        until: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]:
        """Yield the events that match every filter, by sequence number.

        `since` and `until` are inclusive, `after` is not.

        Reads a page at a time, so that a slow reader never blocks a writer.
        """
        equal = {"run": run, "task": task, "kind": kind, "operation": operation}
        where = _Where(
            equal={column: value for column, value in equal.items() if value is not None},
            since=since,
            until=until,
            after=after,
        )
        for page in _everywhere(self.database, where, limit=limit, newest_first=newest_first):
            for row in page:
                why = event_chain.own_fault(row)
                if why is not None:
                    raise log_errors.corrupt(self.database.path, why)
            yield from event_chain.events(page)

    def head(self) -> tuple[int, str]:
        return self.database.read(segments.head, (0, GENESIS))

    def verify(self) -> ChainCheck:
        """Recompute every hash and follow the chain from the first event to the last.

        StoreError `store.corrupt` if the file is damaged, which can hide events from index queries.
        """
        self.database.read(_require_sound, None)
        previous, count = GENESIS, 0
        for page in _everywhere(self.database, _Where()):
            for row in page:
                why = event_chain.fault(row, count + 1, previous)
                if why is not None:
                    return ChainCheck(count, previous, broken_at=count + 1, why=why)
                previous, count = row[-1], count + 1
        return ChainCheck(count, previous, witnessed=min(count, self.database.witnesses.newest()))

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
        last = db.execute(f"SELECT {COLUMNS} FROM events ORDER BY seq DESC LIMIT 1").fetchone()  # noqa: S608
        at = self._clock.now()
        # Require that the last event is as written, before another is chained to it.
        why = None if last is None else event_chain.own_fault(last)
        if why is not None:
            raise log_errors.corrupt(self.database.path, why)
        seq, previous = segments.head(db) if last is None else (last[event_chain.SEQ], last[event_chain.HASH])
        rows = event_chain.chain(encoded, seq, previous, operation=operation, fence=fence, at=at)
        db.executemany(segments.INSERT_EVENT, rows)
        for (new, _), row in zip(encoded, rows, strict=True):
            if new.kind == _STARTED:
                index(db, new.run, new.payload, row[event_chain.SEQ], self._worktree)
        return rows


def _payloads(events: Sequence[NewEvent], redactor: Redactor | None) -> list[str]:
    """Return the canonical text of each payload, without known secrets."""
    for new in events:
        if new.kind not in KINDS:
            raise ValueError(f"no such kind of event: {new.kind}")
    texts = [canonical_json.encode(dict(new.payload)).decode("ascii") for new in events]
    # Most events hold no secret, so that one scan of all of them is enough.
    if redactor is None or not redactor.holds("\n".join(texts)):
        return texts
    return [_redacted(new, redactor) if redactor.holds(text) else text for new, text in zip(events, texts, strict=True)]


def _redacted(new: NewEvent, redactor: Redactor) -> str:
    clean = {name: value if name in EXACT else _clean(name, value, redactor) for name, value in new.payload.items()}
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
    return value if name in IDENTITY else redactor.value(value)


def _require_sound(db: sqlite3.Connection) -> None:
    answer = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if answer != "ok":
        raise log_errors.corrupt(db.execute("PRAGMA database_list").fetchone()[2], answer)


def _require_newest(db: sqlite3.Connection, run: str | None, expected: int) -> None:
    beside = ", ".join("?" * len(BESIDE))
    query = f"SELECT seq FROM events WHERE run = ? AND kind NOT IN ({beside}) ORDER BY seq DESC LIMIT 1"  # noqa: S608
    row = db.execute(query, (run, *BESIDE)).fetchone()
    newest = row[0] if row else 0
    if newest > expected:
        raise Refusal(
            "run.moved-on",
            "Another idumb process has continued this run.",
            hint="idumb status shows where it is now",
            details={"known": expected, "newest": newest},
        )


def _require_fence(db: sqlite3.Connection, worktree: str, fence: int) -> None:
    row = db.execute("SELECT fence FROM owners WHERE worktree = ?", (worktree,)).fetchone()
    current = row[0] if row else None
    if current != fence:
        raise StoreError(
            "store.fence",
            f"another idumb has taken over this working tree (fencing token {current}, this one has {fence})",
            hint="idumb status",
            details={"fence": fence, "current": current},
        )


def _everywhere(
    database: Database, where: _Where, *, limit: int | None = None, newest_first: bool = False
) -> Iterator[list[Row]]:
    """Yield pages of rows, continuing in the segments as if the rows had never left the table."""
    remaining = _LAST if limit is None else limit
    begun = database.read(segments.archived, 0)
    edge = _LAST
    parts = [_archived(database, where, newest_first=newest_first), None]
    for part in reversed(parts) if newest_first else parts:
        for page in _pages(database, where, limit=remaining, newest_first=newest_first) if part is None else part:
            # Rows that were archived meanwhile come again if the newest are read first.
            kept = [row for row in page if row[event_chain.SEQ] < edge] if newest_first else page
            yield kept[:remaining]
            edge = kept[-1][event_chain.SEQ] if kept else edge
            remaining -= len(kept)
            if remaining <= 0:
                return
    if not newest_first and database.read(segments.archived, 0) != begun:
        message = f"events were moved to the archive while they were read: {database.path}"
        raise StoreError("store.busy", message, hint="run the command again")


def _archived(database: Database, where: _Where, *, newest_first: bool) -> Iterator[list[Row]]:
    """Yield matching rows of each segment that may have any; a file is opened on demand."""
    listed: tuple[segments.Segment, ...] = database.read(segments.listed, ())
    if not listed or where.after >= listed[-1].last or _began_later(database, where, listed[-1].last):
        return
    for segment in reversed(listed) if newest_first else listed:
        if segment.last > where.after and where.equal.get("kind", "") in ("", *segment.kinds.split()):
            page = [row for row, _ in segments.placed(database.folder, segment) if _fits(row, where)]
            if page:
                yield page[::-1] if newest_first else page


def _began_later(database: Database, where: _Where, archived: int) -> bool:
    """Return whether the requested run started after everything that was archived."""
    run = where.equal.get("run")
    rows = database.rows("SELECT started_seq FROM runs WHERE id = ?", (run,)) if run is not None else []
    return bool(rows) and rows[0][0] > archived


def _fits(row: Row, where: _Where) -> bool:
    at = row[event_chain.AT]
    return (
        row[event_chain.SEQ] > where.after
        and (where.since is None or at >= where.since)
        and (where.until is None or at <= where.until)
        and all(row[event_chain.PLACE[column]] == value for column, value in where.equal.items())
    )


def _pages(
    database: Database, where: _Where, *, limit: int | None = None, newest_first: bool = False
) -> Iterator[list[Row]]:
    """Yield rows of `events` in the order of COLUMNS, never an empty page."""
    condition, arguments = _condition(where)
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY seq {order} LIMIT ?"  # noqa: S608
    lower, upper, remaining = _first(database, where), _LAST, _LAST if limit is None else limit
    while remaining > 0:
        size = min(PAGE, remaining)
        page = database.rows(query, (*arguments, lower, upper, size))
        if page:
            yield page
        if len(page) < size:
            return
        remaining -= size
        lower, upper = (lower, page[-1][0]) if newest_first else (page[-1][0], upper)


def _condition(where: _Where) -> tuple[str, list[str]]:
    # A run is a short part of the log, a kind is not. The plus keeps SQLite from choosing the other indexes.
    weak = "+" if "run" in where.equal else ""
    parts = [f"{weak if column in _WIDE else ''}{column} = ?" for column in where.equal]
    arguments = list(where.equal.values())
    for bound, comparison in ((where.since, ">="), (where.until, "<=")):
        if bound is not None:
            # The plus keeps SQLite from sorting by the time index for every page.
            parts.append(f"+at {comparison} ?")
            arguments.append(bound)
    return " AND ".join([*parts, "seq > ?", "seq < ?"]), arguments


def _first(database: Database, where: _Where) -> int:
    """Return the number after which to start. The clock may have gone back, so times alone are not enough."""
    if where.since is None:
        return where.after
    # Without the plus, SQLite searches the minimum row by row from the first event, past the time index.
    rows = database.rows("SELECT MIN(+seq) FROM events WHERE at >= ?", (where.since,))
    earliest = rows[0][0] if rows else None
    return where.after if earliest is None else max(where.after, earliest - 1)


def index(db: sqlite3.Connection, run: str | None, payload: Mapping[str, Any], seq: int, worktree: str) -> None:
    """Add a run to the index; event `seq` starts it. The events have its state, so that the column stays as it is."""
    db.execute(
        "INSERT INTO runs (id, phase, worktree, number, started_seq, state) VALUES (?, ?, ?, ?, ?, 'active')",
        (run, payload["phase"], worktree, payload["number"], seq),
    )


def index_row(db: sqlite3.Connection, row: Row, worktree: str) -> None:
    """`index` for an event that was written earlier."""
    if row[event_chain.KIND] == _STARTED:
        index(db, row[event_chain.RUN], json.loads(row[event_chain.PAYLOAD]), row[event_chain.SEQ], worktree)
