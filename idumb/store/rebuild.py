"""Making the database anew from what is left of it, its copy and its segments. Nothing damaged is ever deleted.

The new one is made beside the old one, checked and forced to disk before it takes the place in one step, so a kill
leaves either the old one or the new one, and doing it again is always right.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.store import anchor, connection, event_chain, log_errors, new_database, segments, worktrees
from idumb.store.anchored_copy import AnchoredCopy, Placed, set_aside
from idumb.system.files import atomic_write

ANEW = (
    "put a backup of store.db in its place; without one, idumb deinit writes all that is left into a folder,"
    " and idumb init begins anew"
)
"""What to do where no event, or not every one, can be recovered."""


@dataclass(frozen=True, slots=True)
class Recoverable:
    """`events` can be recovered from `source`; `known` is the highest number that any witness tells of.

    `possible` when nothing that a witness knows would be missing. `words` say it for a person.
    """

    events: int
    head: str
    known: int
    source: str
    possible: bool
    words: str


@dataclass(frozen=True, slots=True)
class Report:
    """`set_aside` is where the damaged database is now, "" where there was none."""

    events: int
    source: str
    set_aside: str


def plan(common_dir: str, kept_refs: Callable[[], bool]) -> Recoverable:
    """What could be recovered. Changes nothing."""
    left = _Left(common_dir)
    try:
        count, head = 0, GENESIS
        for row, _ in left.events():
            count, head = row[event_chain.SEQ], row[event_chain.HASH]
        known = left.known()
    except StoreError as error:
        return Recoverable(0, GENESIS, 0, "", possible=False, words=error.message)
    finally:
        left.close()
    possible = count >= known and (known > 0 or (not count and not kept_refs()))
    return Recoverable(count, head, known, left.source(), possible, _words(count, known, kept_refs, possible=possible))


def rebuild(common_dir: str, kept_refs: Callable[[], bool]) -> Report:
    """Put a database of all recoverable events in its place. The caller holds the locks of all work trees.

    StoreError `store.lost` where that would forget an event that a witness knows; then nothing was changed.
    """
    recoverable = plan(common_dir, kept_refs)
    folder = os.path.join(common_dir, "idumb")
    path = os.path.join(folder, "store.db")
    if not recoverable.possible:
        raise StoreError(
            "store.lost",
            f"the event log cannot be made anew: {recoverable.words}: {path}",
            hint=ANEW,
            details={"path": path, "events": recoverable.events, "known": recoverable.known},
        )
    with connection.translated(path):
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

    def known(self) -> int:
        """The highest number that database, copy or anchor tell of."""
        witnessed = anchor.read(os.path.join(self.folder, "anchor.json"))
        return max([0 if witnessed is None else witnessed.seq, *(source.last() for source in self._sources())])

    def source(self) -> str:
        named = [source.name for source in self._sources() if source.last()]
        return " and ".join(named)

    def close(self) -> None:
        self.damaged.close()

    def _sources(self) -> Iterator[Source]:
        yield self.damaged
        tail = self.copy.tail() if self.trusted else None
        if tail is not None:
            yield Stream("the copy in the state directory", self.copy.lines(), tail[0])
        if archive_names(self.folder):
            yield Stream("the archive", archived(self.folder), 0)


def _words(count: int, known: int, kept_refs: Callable[[], bool], *, possible: bool) -> str:
    if possible:
        return f"all {count} events that are known can be recovered"
    if count:
        return f"only events 1 to {count} of {known or 'an unknown number'} can be recovered"
    refs = "; refs/idumb still holds every snapshot and checkpoint, and stays as it is" if kept_refs() else ""
    return f"no event can be recovered{refs}"


def _make(fresh: str, common_dir: str, recoverable: Recoverable) -> None:
    """Events into the table, but for those that are in whole segments."""
    left = _Left(common_dir)

    def fill(database: sqlite3.Connection) -> None:
        archived = _register(database, left.folder)
        new_database.insert(database, left.events(), _only_worktree(left.folder), archived)
        new_database.fence_off(database, worktrees.names(left.folder), left.damaged.fence(), "idumb doctor --fix")

    try:
        if new_database.make(fresh, fill) != (recoverable.events, recoverable.head):
            raise log_errors.corrupt(fresh, "what was written is not what was read")
    finally:
        left.close()


def _register(database: sqlite3.Connection, folder: str) -> int:
    """List the segments again whose files are whole; the last event in them."""
    last, head = 0, GENESIS
    for name in archive_names(folder):
        found = segments.measured(folder, name, last, head)
        if found is None:
            break
        segments.register(database, found)
        last, head = found.last, found.head
    return last


def _only_worktree(folder: str) -> str:
    """Where a run is put whose work tree no source tells: the only one there is, else the main one."""
    names = worktrees.names(folder)
    return names[0] if len(names) == 1 else "main"


def _replace(path: str, fresh: str) -> str:
    """Where the old file is now. Its journal goes first: beside the new one it would be played back into it."""
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
    """A second name for a file, so that there is no moment without one at its place."""
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
    """A copy that has damage, or another end, is kept beside; the new log makes a new one."""
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


_ROW = f"SELECT {event_chain.COLUMNS} FROM events WHERE seq = ?"  # noqa: S608


_WORKTREE = "SELECT worktree FROM runs WHERE id = ?"


class Source(Protocol):
    """`name` is how a person calls it."""

    name: str

    def at(self, seq: int) -> Placed | None:
        """The event of that number if it can be read and is what was written. Asked in ascending order."""

    def last(self) -> int:
        """The highest number it seems to know; 0 where it cannot tell."""


class Stream:
    """Lines in ascending order; those that are damaged were left out by whoever made them."""

    def __init__(self, name: str, placed: Iterable[Placed], last: int) -> None:
        self.name = name
        self._rest = iter(placed)
        self._last = last
        self._next: Placed | None = next(self._rest, None)

    def at(self, seq: int) -> Placed | None:
        while self._next is not None and self._next[0][event_chain.SEQ] < seq:
            self._next = next(self._rest, None)
        found = self._next
        return found if found is not None and found[0][event_chain.SEQ] == seq else None

    def last(self) -> int:
        return self._last


class Damaged:
    """A database file, read without a lock and without its journal, so that nothing of it changes."""

    name = "the damaged database"

    def __init__(self, path: str) -> None:
        from urllib.parse import quote

        self._connection: sqlite3.Connection | None = None
        with contextlib.suppress(sqlite3.Error):
            self._connection = sqlite3.connect(
                f"file:{quote(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )

    def at(self, seq: int) -> Placed | None:
        found = self._one(_ROW, seq)
        if found is None or event_chain.own_fault(found) is not None:
            return None
        place = self._one(_WORKTREE, found[event_chain.RUN])
        return found, place[0] if place and isinstance(place[0], str) else None

    def last(self) -> int:
        found = self._one("SELECT MAX(seq) FROM events WHERE seq > ?", 0)
        return found[0] if found and isinstance(found[0], int) else 0

    def fence(self) -> int:
        """The highest token that any work tree was given, as far as that can be read."""
        found = self._one("SELECT MAX(fence) FROM owners WHERE fence > ?", 0)
        return found[0] if found and isinstance(found[0], int) else 0

    def problem(self) -> str | None:
        """What SQLite itself finds wrong with the file, None where nothing is."""
        try:
            found = (
                None if self._connection is None else self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            )
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return str(error)
        if found is None or found[0] != "ok":
            return "it cannot be opened" if found is None else str(found[0])
        made = self._one("SELECT 1 FROM sqlite_master WHERE name = ?", "events")
        return "it is no event log" if made is None else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _one(self, query: str, argument: object) -> event_chain.Row | None:
        if self._connection is None:
            return None
        try:
            found: event_chain.Row | None = self._connection.execute(query, (argument,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            return None
        return found


def archive_names(folder: str) -> list[str]:
    """The files of segments in order; `folder` is `<common dir>/idumb`."""
    place = os.path.join(folder, segments.FOLDER)
    if not os.path.isdir(place):
        return []
    return sorted(name for name in os.listdir(place) if name.endswith(segments.ENDING) and not name.startswith("."))


def archived(folder: str) -> Iterator[Placed]:
    """Every event in the files of segments that can be read, whatever any table says of them."""
    for name in archive_names(folder):
        yield from segments.readable(os.path.join(folder, segments.FOLDER, name))


def merged(sources: Sequence[Source], path: str) -> Iterator[Placed]:
    """The longest chain from the first event on. StoreError `store.diverged` where two sources tell different ones."""
    seq, previous = 1, GENESIS
    while True:
        fitting = [
            (source, found)
            for source in sources
            if (found := source.at(seq)) is not None and found[0][event_chain.PREVIOUS] == previous
        ]
        if not fitting:
            return
        if len({found[0][event_chain.HASH] for _, found in fitting}) > 1:
            raise log_errors.diverged(path, seq, " and ".join(source.name for source, _ in fitting[1:]))
        row = fitting[0][1][0]
        yield row, next((place for _, (_, place) in fitting if place is not None), None)
        seq, previous = seq + 1, row[event_chain.HASH]
