"""Rebuild the database from what is left of it, its copy and its segments. Nothing damaged is ever deleted.

The new database is written beside the old one, checked and forced to disk before one rename puts it in place. A kill
leaves either the old one or the new one, and repeating the rebuild is always safe.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.lazy_dataclass import dataclass
from idumb.store import anchor, connection, event_chain, event_log, log_errors, owner_card, schema, segments
from idumb.store.event_chain import Placed
from idumb.store.witnesses import AnchoredCopy, set_aside
from idumb.system.files import atomic_write

RESTORE = (
    "restore a backup of store.db; without one, idumb deinit saves everything that is left in a folder,"
    " and idumb init starts a new log"
)
"""What to do if some or all events cannot be recovered."""


# Unknown owners may have taken a working tree without writing an event; none of their tokens may come back.
_FENCES_UNSEEN = 1000


@dataclass(frozen=True, slots=True)
class Recoverable:
    """`events` can be recovered from `source`; `last_known` is the highest number that any witness knows.

    `possible` if no event that a witness knows would be missing. `words` describe it for a person.
    """

    events: int
    head: str
    last_known: int
    source: str
    possible: bool
    words: str


@dataclass(frozen=True, slots=True)
class Report:
    """`set_aside` is the new path of the damaged database, "" if there was none."""

    events: int
    source: str
    set_aside: str


def plan(common_dir: str, kept_refs: Callable[[], bool]) -> Recoverable:
    """Return what can be recovered. Changes nothing."""
    remains = _Left(common_dir)
    try:
        count, head = 0, GENESIS
        for row, _ in remains.events():
            count, head = row[event_chain.SEQ], row[event_chain.HASH]
        known_count = remains.highest_known()
    except StoreError as error:
        return Recoverable(0, GENESIS, 0, "", possible=False, words=error.message)
    finally:
        remains.close()
    possible = count >= known_count and (known_count > 0 or (not count and not kept_refs()))
    return Recoverable(
        count, head, known_count, remains.source(), possible, _words(count, known_count, kept_refs, possible=possible)
    )


def rebuild(common_dir: str, kept_refs: Callable[[], bool]) -> Report:
    """Put a database of all recoverable events in place. The caller holds the locks of all working trees.

    StoreError `store.lost` if that would forget an event that a witness knows; then nothing was changed.
    """
    recoverable = plan(common_dir, kept_refs)
    folder = os.path.join(common_dir, "idumb")
    path = os.path.join(folder, "store.db")
    if not recoverable.possible:
        raise StoreError(
            "store.lost",
            f"the event log cannot be rebuilt: {recoverable.words}: {path}",
            hint=RESTORE,
            details={"path": path, "events": recoverable.events, "known": recoverable.last_known},
        )
    with log_errors.translated(path):
        fresh = f"{path}.new"
        _make(fresh, common_dir, recoverable)
        anchor.write(os.path.join(folder, "anchor.json"), anchor.Anchor(recoverable.events, recoverable.head))
        kept = _replace(path, fresh)
        _renew_copy(common_dir, recoverable)
    return Report(recoverable.events, recoverable.source, kept)


class _Left:
    """Everything that is left of a log."""

    def __init__(self, common_dir: str) -> None:
        self.folder = os.path.join(common_dir, "idumb")
        self.path = os.path.join(self.folder, "store.db")
        self.copy = AnchoredCopy(common_dir)
        self.trusted = self.copy.problem() is None
        self.damaged = Damaged(self.path)

    def events(self) -> Iterator[Placed]:
        return merged(list(self._sources()), self.path)

    def highest_known(self) -> int:
        """Return the highest number that database, copy or anchor know."""
        witnessed = anchor.read(os.path.join(self.folder, "anchor.json"))
        return max([0 if witnessed is None else witnessed.seq, *(source.last() for source in self._sources())])

    def source(self) -> str:
        names = [source.name for source in self._sources() if source.last()]
        return " and ".join(names)

    def close(self) -> None:
        self.damaged.close()

    def _sources(self) -> Iterator[Source]:
        yield self.damaged
        tail = self.copy.tail() if self.trusted else None
        if tail is not None:
            yield Stream("the copy in the state directory", self.copy.lines(), tail[0])
        if archive_names(self.folder):
            yield Stream("the archive", archived(self.folder), 0)


def _words(count: int, last_known: int, kept_refs: Callable[[], bool], *, possible: bool) -> str:
    if possible:
        return f"all {count} known events can be recovered"
    if count:
        return f"only events 1 to {count} of {last_known or 'an unknown number'} can be recovered"
    refs = "; refs/idumb still holds every snapshot and checkpoint, and stays as it is" if kept_refs() else ""
    return f"no event can be recovered{refs}"


def _make(fresh: str, common_dir: str, recoverable: Recoverable) -> None:
    """Insert the events that no whole segment holds."""
    remains = _Left(common_dir)

    def fill(database: sqlite3.Connection) -> None:
        archived = _register(database, remains.folder)
        insert_events(database, remains.events(), _only_worktree(remains.folder), archived)
        fence_off(database, owner_card.worktrees(remains.folder), remains.damaged.fence(), "idumb doctor --fix")

    try:
        if make_database(fresh, fill) != (recoverable.events, recoverable.head):
            raise log_errors.corrupt(fresh, "the data read back differs from what was written")
    finally:
        remains.close()


def _register(database: sqlite3.Connection, folder: str) -> int:
    """List again the segments whose files are whole; return their last event."""
    last, head = 0, GENESIS
    for name in archive_names(folder):
        segment = segments.measured(folder, name, last, head)
        if segment is None:
            break
        segments.register(database, segment)
        last, head = segment.last, segment.head
    return last


def _only_worktree(folder: str) -> str:
    """Return the working tree for runs whose own is unknown: the only one, or the main one."""
    names = owner_card.worktrees(folder)
    return names[0] if len(names) == 1 else "main"


def _replace(path: str, fresh: str) -> str:
    """Return where the old file is now. Its journal is moved first: beside the new file, SQLite would replay it."""
    journal = f"{path}-journal"
    if os.path.lexists(journal) and os.path.getsize(journal):
        set_aside(journal, "damaged")
    kept = ""
    if os.path.lexists(path):
        kept = _kept_beside(path)
    atomic_write.sync_folder(os.path.dirname(path))
    os.replace(fresh, path)
    atomic_write.sync_folder(os.path.dirname(path))
    return kept


def _kept_beside(path: str) -> str:
    """Hard-link a file, so that its path is never empty."""
    for number in range(1, 1_000_000):
        place = f"{path}.damaged-{number}"
        try:
            os.link(path, place, follow_symlinks=False)
        except FileExistsError:
            continue
        except OSError:
            return set_aside(path, "damaged")
        return place
    raise FileExistsError(path)


def _renew_copy(common_dir: str, recoverable: Recoverable) -> None:
    """Set aside a copy that is damaged or has another end; the new log makes a new one."""
    copy = AnchoredCopy(common_dir)
    if copy.problem() is not None:
        return
    if os.path.lexists(copy.path) and (copy.damaged() or _runs_past(copy.lines(), recoverable)):
        copy.set_aside()
    database = connection.Database(common_dir)
    try:
        database.set_anchor()
    finally:
        database.close()


def _runs_past(lines: Iterable[Placed], recoverable: Recoverable) -> bool:
    return any(row[event_chain.SEQ] > recoverable.events for row, _ in lines)


_WORKTREE = "SELECT worktree FROM runs WHERE id = ?"


class Source(Protocol):
    """`name` is its name for people."""

    name: str

    def at(self, seq: int) -> Placed | None:
        """Return the event of that number if it is readable and as written. Call in ascending order."""

    def last(self) -> int:
        """Return the highest number it seems to know; 0 if unknown."""


class Stream:
    """Lines in ascending order; their reader skipped the damaged ones."""

    def __init__(self, name: str, placed: Iterable[Placed], last: int) -> None:
        self.name = name
        self._rest = iter(placed)
        self._last = last
        self._next: Placed | None = next(self._rest, None)

    def at(self, seq: int) -> Placed | None:
        while self._next is not None and self._next[0][event_chain.SEQ] < seq:
            self._next = next(self._rest, None)
        return self._next if self._next is not None and self._next[0][event_chain.SEQ] == seq else None

    def last(self) -> int:
        return self._last


class Damaged:
    """A database file, read without a lock and without its journal, so that nothing in it changes."""

    name = "the damaged database"

    def __init__(self, path: str) -> None:
        from urllib.parse import quote

        self._connection: sqlite3.Connection | None = None
        with contextlib.suppress(sqlite3.Error):
            self._connection = sqlite3.connect(
                f"file:{quote(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )

    def at(self, seq: int) -> Placed | None:
        row = self._row(event_chain.ROW, seq)
        if row is None or event_chain.own_fault(row) is not None:
            return None
        place = self._row(_WORKTREE, row[event_chain.RUN])
        return row, place[0] if place and isinstance(place[0], str) else None

    def last(self) -> int:
        return self._highest("SELECT MAX(seq) FROM events WHERE seq > ?")

    def fence(self) -> int:
        """Return the highest token of any working tree, as far as it is readable."""
        return self._highest("SELECT MAX(fence) FROM owners WHERE fence > ?")

    def problem(self) -> str | None:
        """Return what SQLite itself finds wrong with the file; None if nothing."""
        if self._connection is None:
            return "it cannot be opened"
        try:
            answer = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return str(error)
        if answer != "ok":
            return answer
        table = self._row("SELECT 1 FROM sqlite_master WHERE name = ?", "events")
        return "it is not an event log" if table is None else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _highest(self, query: str) -> int:
        row = self._row(query, 0)
        return row[0] if row and isinstance(row[0], int) else 0

    def _row(self, query: str, argument: object) -> event_chain.Row | None:
        if self._connection is None:
            return None
        try:
            row: event_chain.Row | None = self._connection.execute(query, (argument,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            return None
        return row


def archive_names(folder: str) -> list[str]:
    """Return the segment files in order; `folder` is `<common dir>/idumb`."""
    place = os.path.join(folder, segments.FOLDER)
    if not os.path.isdir(place):
        return []
    return sorted(name for name in os.listdir(place) if name.endswith(segments.ENDING) and not name.startswith("."))


def archived(folder: str) -> Iterator[Placed]:
    """Yield every readable event in the segment files, whatever any table says."""
    for name in archive_names(folder):
        yield from segments.readable(os.path.join(folder, segments.FOLDER, name))


def merged(sources: Sequence[Source], path: str) -> Iterator[Placed]:
    """Return the longest chain from the first event. StoreError `store.diverged` if two sources disagree."""
    seq, previous = 1, GENESIS
    while True:
        fitting = [
            (source, event)
            for source in sources
            if (event := source.at(seq)) is not None and event[0][event_chain.PREVIOUS] == previous
        ]
        if not fitting:
            return
        if len({event[0][event_chain.HASH] for _, event in fitting}) > 1:
            raise log_errors.diverged(path, seq, " and ".join(source.name for source, _ in fitting[1:]))
        row = fitting[0][1][0]
        yield row, next((place for _, (_, place) in fitting if place is not None), None)
        seq, previous = seq + 1, row[event_chain.HASH]


def make_database(path: str, fill: Callable[[sqlite3.Connection], None]) -> tuple[int, str]:
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
        schema.create(database)
        fill(database)
        database.execute("COMMIT")
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise log_errors.corrupt(path, "the data read back is damaged")
        head = segments.head(database)
    finally:
        database.close()
    with open(path, "rb") as stream:
        atomic_write.sync(stream.fileno())
    return head


def insert_events(database: sqlite3.Connection, placed: Iterable[Placed], worktree: str, archived: int = 0) -> None:
    """Insert events after number `archived` into the table, and the runs of all events into the index.

    `worktree` is used for runs whose own is unknown. The triggers refuse an event out of place.
    """
    for row, own in placed:
        if row[event_chain.SEQ] > archived:
            database.execute(segments.INSERT_EVENT, row)
        event_log.index_row(database, row, own or worktree)


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
