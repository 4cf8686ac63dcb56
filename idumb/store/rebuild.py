"""Making the database anew from what is left of it, its copy and its segments. Nothing damaged is ever deleted.

The new one is made beside the old one, checked and forced to disk before it takes the place in one step, so a kill
leaves either the old one or the new one, and doing it again is always right.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import GENESIS
from idumb.store import anchor, connection, event_chain, log_errors, new_database, salvage, segments, worktrees
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
        self.damaged = salvage.Damaged(self.path)

    def events(self) -> Iterator[Placed]:
        return salvage.merged(list(self._sources()), self.path)

    def known(self) -> int:
        """The highest number that database, copy or anchor tell of."""
        witnessed = anchor.read(os.path.join(self.folder, "anchor.json"))
        return max([0 if witnessed is None else witnessed.seq, *(source.last() for source in self._sources())])

    def source(self) -> str:
        named = [source.name for source in self._sources() if source.last()]
        return " and ".join(named)

    def close(self) -> None:
        self.damaged.close()

    def _sources(self) -> Iterator[salvage.Source]:
        yield self.damaged
        tail = self.copy.tail() if self.trusted else None
        if tail is not None:
            yield salvage.Stream("the copy in the state directory", self.copy.lines(), tail[0])
        if salvage.archive_names(self.folder):
            yield salvage.Stream("the archive", salvage.archived(self.folder), 0)


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
    for name in salvage.archive_names(folder):
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
