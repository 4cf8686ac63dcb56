"""Copies of the event log: backups in the user's state directory, and files of archived runs in the git folder.

Nothing that happens in the repository reaches the state directory. The newest number there never runs ahead of the log,
so a log that lacks that event is an older copy, or another log.

An archived run is `archive/RUN.jsonl.gz`, one line with the row of each event. The events leave the database only
after that file was forced to disk and read back, and after `log.archived`, the last event of the run, recorded its
head: a trigger of the database requires it. Kinds of `KEPT_OF_ARCHIVED` stay.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS, ChainCheck
from idumb.store import event_chain
from idumb.store.event_chain import HASH, PAYLOAD, PREVIOUS, RUN, SEQ, Heads, Row
from idumb.system import atomic_write, private_folders, user_folders

FOLDER = "log"
KEPT = 3
"""Backups that are kept of one log."""

_NEWEST = "newest.json"
_ENDING = ".db"
_PART = ".part"
_ARCHIVE = "archive"
_ARCHIVED = f"SELECT {event_chain.COLUMNS} FROM events WHERE kind = 'log.archived' ORDER BY seq"  # noqa: S608
_LINKS = "SELECT seq, run, previous, hash FROM events ORDER BY seq"
_PAGE = f"SELECT {event_chain.COLUMNS} FROM events WHERE seq > ? ORDER BY seq LIMIT 500"  # noqa: S608


class Newest(Struct, frozen=True):
    """`hash` is that of event `seq`; `folder` the inode of the log's folder; `fence` the highest token until then."""

    seq: int
    hash: str
    folder: int
    fence: int


class LogBackups:
    """The folder that belongs to the repository of `common_dir`. A moved or copied repository starts another."""

    def __init__(self, common_dir: str) -> None:
        self._parts = (FOLDER, user_folders.repository_id(common_dir))
        self.folder = os.path.join(user_folders.path(), *self._parts)
        self._newest = os.path.join(self.folder, _NEWEST)

    def problem(self) -> str | None:
        """Return why another user could have written it, or None."""
        return user_folders.problem(*self._parts) or private_folders.unsafe(self._newest)

    def newest(self) -> Newest | None:
        """Return None if nothing was recorded, or nothing that can be read and trusted."""
        try:
            with open(self._newest, "rb") as stream:
                fields = canonical_json.decode(stream.read())
            newest = Newest(*(fields[name] for name in Newest.__struct_fields__))
            return newest if fields["check"] == _check(newest) and self.problem() is None else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def record(self, newest: Newest) -> None:
        """Record the newest event, forced to disk. Raises OSError."""
        user_folders.prepare(*self._parts)
        text = json.dumps({**asdict(newest), "check": _check(newest)}, sort_keys=True)
        atomic_write.write(self._newest, text.encode("ascii") + b"\n", mode=0o600)

    def back_up(self, connection: sqlite3.Connection, seq: int) -> None:
        """Copy the log, which ends with event `seq`, forced to disk; remove the oldest. OSError and sqlite3.Error."""
        user_folders.prepare(*self._parts)
        path = os.path.join(self.folder, f"{seq:012d}{_ENDING}")
        for name in os.listdir(self.folder):
            if name.endswith(_PART) and name < os.path.basename(path):  # its command was killed, or the disk was full
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))
        copy(connection, path + _PART)
        os.replace(path + _PART, path)
        atomic_write.sync_folder(self.folder)
        for old in self.paths()[KEPT:]:
            with contextlib.suppress(OSError):
                os.unlink(old)

    def paths(self) -> list[str]:
        """Return the backups, the newest first; none that others could have written."""
        if self.problem() is not None or not os.path.isdir(self.folder):
            return []
        names = sorted((name for name in os.listdir(self.folder) if name.endswith(_ENDING)), reverse=True)
        return [os.path.join(self.folder, name) for name in names]

    def newest_good(self) -> tuple[str, int] | None:
        """Return the newest backup whose every event is as written, and its last event; archived runs are not in it."""
        return next(((path, last) for path in self.paths() if (last := _last_of_whole(path)) is not None), None)


def _check(newest: Newest) -> str:
    return canonical_json.digest(astuple(newest))


def copy(connection: sqlite3.Connection, path: str) -> None:
    """Write the database to a file, forced to disk; one that exists is replaced. OSError and sqlite3.Error."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with contextlib.closing(sqlite3.connect(path)) as target:
        connection.backup(target)
    with open(path, "rb") as stream:
        atomic_write.sync(stream.fileno())


def _read_only(path: str) -> contextlib.closing[sqlite3.Connection]:
    from urllib.parse import quote

    return contextlib.closing(sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True))


def _last_of_whole(path: str) -> int | None:
    """Return the number of the last event in a database file; None if something in it is not as written."""
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError, OverflowError), _read_only(path) as connection:
        faults = map(event_chain.own_fault, _events(connection))
        if not (unsound(connection) or any(faults)):
            return int(connection.execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()[0])
    return None


def check(path: str, folder: str) -> ChainCheck:
    """Follow every chain of a database file. `folder` has the files of its archived runs."""
    try:
        with _read_only(path) as connection:
            return verified(connection, folder)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        return ChainCheck(0, "", broken_at=1, why=str(error))


def _sound_heads(connection: sqlite3.Connection) -> Heads | str:
    """Return what the first event of each run is chained to, or what is wrong with tables, indexes or runs."""
    answer = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if answer != "ok":
        return answer
    runs = connection.execute(f"SELECT {event_chain.RUN_COLUMNS} FROM runs ORDER BY position")  # noqa: S608
    heads = event_chain.run_heads(runs)
    return "a run was changed after it was written" if heads is None else heads


def unsound(connection: sqlite3.Connection) -> str | None:
    """Return what is wrong with tables, indexes, runs or the links between events; None if nothing.

    What an event says is not compared with its hash here: its reader does that. An archived run has only some events.
    """
    heads = _sound_heads(connection)
    if isinstance(heads, str):
        return heads
    gone = {record["run"]: record["events"] + 1 for record in archived_runs(connection)}
    seq = count = 0
    for seq, run, previous, own in connection.execute(_LINKS):
        count += 1
        if run in gone:
            gone[run] -= 1
        elif previous != heads.get(run, GENESIS):
            return f"event {seq} is not chained to the event before it"
        heads[run] = own
    return None if count + sum(gone.values()) == seq else "an event is missing"


def verified(connection: sqlite3.Connection, folder: str) -> ChainCheck:
    """Follow every chain of an open log, including the archived runs, whose files are below `folder`.

    The head is "" if the tables or runs are damaged. No lock is held between two pages: a paused reader would block
    writers. If a run is archived meanwhile, follow again.
    """
    import heapq

    heads = _sound_heads(connection)
    if isinstance(heads, str):
        return ChainCheck(0, "", broken_at=1, why=heads)
    records = archived_runs(connection)
    archived = (archived_events(folder, record) for record in records)
    in_order = heapq.merge(_events(connection), *archived, key=lambda row: row[SEQ])
    chain = event_chain.follow(in_order, heads)
    if chain.broken_at is None or archived_runs(connection) == records:
        return chain
    return verified(connection, folder)


def _events(connection: sqlite3.Connection) -> Iterator[Row]:
    seq = 0
    while page := connection.execute(_PAGE, (seq,)).fetchall():
        yield from page
        seq = page[-1][SEQ]


def archived_runs(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the payload of every `log.archived` that is as written: run, events, first, last, head and file."""
    written = (row for row in connection.execute(_ARCHIVED) if event_chain.own_fault(row) is None)
    return [json.loads(row[PAYLOAD]) for row in written]


def archived_events(folder: str, record: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the events of an archived run; they end where its file is damaged. `folder` is `<common dir>/idumb`."""
    import gzip

    try:
        with gzip.open(os.path.join(folder, _ARCHIVE, record["file"]), "rb") as stream:
            for text in stream:
                yield msgspec.json.decode(text, type=event_chain.STORED)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        return


def lost_archives(connection: sqlite3.Connection, folder: str) -> list[str]:
    """Return the files of archived runs that are missing or damaged."""

    def is_lost(record: Mapping[str, Any]) -> bool:
        return [*map(event_chain.own_fault, archived_events(folder, record))] != [None] * record["events"]

    return [record["file"] for record in filter(is_lost, archived_runs(connection))]


def archive(folder: str, events: Sequence[Row]) -> dict[str, Any] | None:
    """Write the file of a run, forced to disk, and read it back.

    Return the payload of `log.archived`; None if the events are no chain, or the file has others. Raises OSError.
    """
    import gzip

    first, last = events[0], events[-1]
    record = {
        "run": first[RUN],
        "events": len(events),
        "first": first[SEQ],
        "last": last[SEQ],
        "head": last[HASH],
        "file": f"{first[RUN]}.jsonl.gz",
    }
    packed = io.BytesIO()
    # No time and no name inside: the same events produce the same bytes.
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream:
        stream.writelines(msgspec.json.encode(row) + b"\n" for row in events)
    place = os.path.join(folder, _ARCHIVE)
    private_folders.make(place)
    atomic_write.write(os.path.join(place, record["file"]), packed.getvalue(), mode=0o600)
    chained = all(row[PREVIOUS] == before[HASH] for before, row in itertools.pairwise(events))
    whole = chained and not any(map(event_chain.own_fault, events))
    return record if whole and list(archived_events(folder, record)) == list(events) else None


def set_aside(path: str, word: str) -> str:
    """Rename a file or folder to the first free `NAME.WORD-N` beside it, and return that path."""
    place = atomic_write.free_name(path, f".{word}-")
    os.rename(path, place)
    return place
