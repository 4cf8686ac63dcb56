"""Put the newest good backup in the place of a log that is damaged, missing or older. Nothing damaged is ever deleted.

The new database is whole, with an event that says what is missing, before one rename puts it in place. A kill leaves
the old one, none or the new one; none is never taken for a new log, and repeating the restore is always safe.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from idumb.app.ports.process import Clock
from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS, NewEvent
from idumb.lazy_dataclass import dataclass
from idumb.store import backups, connection, event_chain, event_log, log_errors, owner_card, schema
from idumb.store.backups import Newest
from idumb.system.files import atomic_write

KIND = "log.restored"


@dataclass(frozen=True, slots=True)
class Recovery:
    """`backup` is the newest good one, None without any, and has `events` events.

    `known` is the newest event that the state directory knows, None if it knows none.
    """

    backup: str | None
    events: int
    known: Newest | None

    @property
    def is_whole(self) -> bool:
        """Whether the backup has every event that is known."""
        return self.backup is not None and self.known is not None and self.events >= self.known.seq

    def words(self) -> str:
        """Return what is there and what would be missing."""
        have = f"the newest good backup has events 1 to {self.events}" if self.backup else "there is no good backup"
        if self.is_whole:
            return f"{have}, all that are known"
        if self.known is None:
            return f"{have}; how many followed is not known"
        return f"{have}; events {self.events + 1} to {self.known.seq}, and any later ones, are missing"


def plan(database: connection.Database) -> Recovery:
    """Return what can be restored. Changes nothing."""
    good = database.backups.newest_good(database.folder)
    path, events = (None, 0) if good is None else (good[0], good[1].count)
    return Recovery(path, events, database.backups.newest())


def restore(database: connection.Database, recovery: Recovery, clock: Clock) -> str:
    """Put the backup in place, or an empty log. The caller holds the locks of all working trees.

    Return where the old file is now, "" if there was none. Raises StoreError and OSError; then call it again.
    """
    database.close()
    fresh = f"{database.path}.new"
    with log_errors.translated(database.path):
        kept = backups.set_aside(database.path, "damaged") if os.path.lexists(database.path) else ""
        _copy(recovery.backup, fresh)
        newest = _with_gap(fresh, database, recovery, clock.now(), kept)
        database.backups.record(newest)
        journal = f"{database.path}-journal"
        if os.path.lexists(journal) and os.path.getsize(journal):
            backups.set_aside(journal, "damaged")  # beside the new file, SQLite would replay it
        os.replace(fresh, database.path)
        atomic_write.sync_folder(database.folder)
    return kept


def _copy(backup: str | None, fresh: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:" if backup is None else backup)) as source:
        if backup is None:
            schema.create(source)
        backups.copy(source, fresh)


def _with_gap(fresh: str, database: connection.Database, recovery: Recovery, at: str, kept: str) -> Newest:
    """Record what is missing, and give every working tree a token that no owner had. Return the new newest event."""
    cards = owner_card.all_cards(database.folder)
    known = recovery.known.fence if recovery.known else 0
    with contextlib.closing(sqlite3.connect(fresh)) as new, new:
        new.execute("PRAGMA synchronous = FULL")
        names = {name for (name,) in new.execute("SELECT worktree FROM owners")} | set(
            owner_card.worktrees(database.folder)
        )
        highest = new.execute("SELECT COALESCE(MAX(fence), 0) FROM owners").fetchone()[0]
        fence = max([known, highest, *(card.get("fence") or 0 for _, card in cards)]) + 1
        for name in sorted(names):
            new.execute("INSERT OR REPLACE INTO owners VALUES (?, ?, 'idumb doctor --fix', ?)", (name, fence, at))
        payload = {
            "backup": recovery.backup,
            "events": recovery.events,
            "known": recovery.known.seq if recovery.known else None,
            "kept": kept or None,
        }
        text = canonical_json.encode(payload).decode("ascii")
        last = new.execute("SELECT hash FROM events WHERE run IS NULL ORDER BY seq DESC LIMIT 1").fetchone()
        heads: event_chain.Heads = {None: last[0] if last else GENESIS}
        seq, _ = connection.head(new)
        (row,) = event_chain.chain(
            [(NewEvent(KIND, payload), text)], seq, heads, operation="doctor", fence=fence, at=at
        )
        new.execute(event_log.INSERT, row)
    return Newest(row[event_chain.SEQ], row[event_chain.HASH], os.stat(database.folder).st_ino, fence)
