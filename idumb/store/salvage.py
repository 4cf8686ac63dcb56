"""What can still be read of a log: from a damaged database, from its copy, from its segments; event by event.

Each event is taken from whichever source has it as it was written, so a hole in one is filled from another.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from idumb.domain.runs.event import GENESIS
from idumb.store import event_chain, log_errors, segments
from idumb.store.anchored_copy import Placed

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
