"""Files beside the database: backups of the whole log, and segments of older events."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from idumb.app.ports.host import Clock
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs.event import GENESIS, ChainCheck
from idumb.store import connection, event_chain, log_errors, rebuild, segments
from idumb.store.event_chain import Placed
from idumb.system.files import atomic_write, private_folders

SIZE = 5000
"""The most events per segment: a segment is unpacked as a whole."""


class SqliteLogFiles:
    """Files of the event log outside its database: backups and archive segments."""

    def __init__(self, database: connection.Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def back_up(self, path: str) -> tuple[int, str]:
        """Write all events, including segments, to a new database. Return number and hash of the last one.

        Refusal `backup.exists` if the name is taken. On return it is forced to disk.
        """
        if os.path.lexists(path):
            raise Refusal("backup.exists", f"{path} already exists.", hint="choose another name")
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise Refusal("backup.no-folder", f"There is no folder {folder}.", hint=f"mkdir -p {shlex.quote(folder)}")
        part = f"{path}.{os.getpid()}.part"
        with log_errors.translated(path):
            try:
                head = rebuild.make_database(part, self._fill)
                _put(part, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
            atomic_write.sync_folder(folder)
        return head

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Recompute every hash, and compare the history with the log of this repository."""
        if not os.path.isfile(path):
            raise Refusal("backup.missing", f"There is no file {path}.", hint="idumb backup FILE writes one")
        damaged = rebuild.Damaged(path)
        try:
            why = damaged.problem()
            if why is not None:
                hint = "the file is damaged or is not a backup; idumb backup FILE writes another one"
                raise StoreError("store.corrupt", f"{path} cannot be read as a backup: {why}", hint=hint)
            result = _walked(damaged)
        finally:
            damaged.close()
        head = self._database.read(lambda db: segments.hash_at(db, result.count), None)
        return result, head == result.head

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The segments: number, name, first, last, previous, head, sha256, at, kinds."""
        none: tuple[segments.Segment, ...] = ()
        return [asdict(segment) for segment in self._database.read(segments.listed, none)]

    def starts(self) -> Sequence[tuple[str, str, str, int]]:
        """Return (run, phase, working tree, first event) of every run of the repository, oldest first."""
        query = "SELECT id, phase, worktree, started_seq FROM runs ORDER BY started_seq"
        none: list[tuple[str, str, str, int]] = []
        return self._database.read(lambda db: db.execute(query).fetchall(), none)

    def archive(self, last: int) -> Sequence[Mapping[str, Any]]:
        """Move the events up to number `last` into segments; return the new ones.

        A segment is on disk and was read back before its events leave the table.
        """
        new = []
        with log_errors.translated(self._database.path):
            while (first := self._database.read(segments.archived, 0) + 1) <= last:
                new.append(self._moved(first, min(last, first + SIZE - 1)))
            with contextlib.suppress(sqlite3.Error):
                self._database.read(lambda db: db.execute("VACUUM"), None)
        return [asdict(segment) for segment in new]

    def _moved(self, first: int, last: int) -> segments.Segment:
        listed = self.listed()
        head = listed[-1]["head"] if listed else GENESIS
        name = f"{len(listed) + 1:06d}-{last}{segments.ENDING}"
        folder = os.path.join(self._database.folder, segments.FOLDER)
        private_folders.make(folder)
        events = takewhile(lambda placed: placed[0][event_chain.SEQ] <= last, self._database.placed(after=first - 1))
        atomic_write.write(os.path.join(folder, name), _packed(events), mode=0o600)
        segment = segments.measured(self._database.folder, name, first - 1, head)
        if segment is None or segment.last != last:
            raise log_errors.corrupt(os.path.join(folder, name), "the data read back differs from what was written")
        self._database.write(lambda db: _drop(db, segment))
        return segment

    def _fill(self, database: sqlite3.Connection) -> None:
        rebuild.insert_events(database, self._database.placed(), "main")
        owners: list[tuple[str, int]] = self._database.read(
            lambda db: db.execute("SELECT worktree, fence FROM owners").fetchall(), []
        )
        highest = max((fence for _, fence in owners), default=0)
        rebuild.fence_off(database, [name for name, _ in owners], highest, "idumb backup")


def _put(part: str, path: str) -> None:
    """Put a file in place without overwriting one that appeared meanwhile. FileExistsError then."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        # A backup disk may not support hard links; then reserve the name first.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        os.rename(part, path)


def _drop(db: sqlite3.Connection, segment: segments.Segment) -> None:
    segments.register(db, segment)
    db.execute("DELETE FROM events WHERE seq <= ?", (segment.last,))


def _packed(events: Iterable[Placed]) -> bytes:
    import gzip

    # No time and no name inside: the same events produce the same bytes.
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream:
        stream.writelines(event_chain.line(row, worktree) for row, worktree in events)
    return packed.getvalue()


def _walked(damaged: rebuild.Damaged) -> ChainCheck:
    count, head, last = 0, GENESIS, damaged.last()
    while count < last:
        placed = damaged.at(count + 1)
        why = (
            f"event {count + 1} is missing or was changed"
            if placed is None
            else event_chain.fault(placed[0], count + 1, head)
        )
        if placed is None or why is not None:
            return ChainCheck(count, head, broken_at=count + 1, why=str(why))
        count, head = count + 1, placed[0][event_chain.HASH]
    return ChainCheck(count, head)
