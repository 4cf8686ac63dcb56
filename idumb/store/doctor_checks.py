"""Checks of `idumb doctor` on the event log: it opens, is whole, and is the newest one. And its restore.

A restore puts the newest good backup in the place of a log that is damaged, missing or older. Nothing damaged is ever
deleted. The new database is whole, with an event that says what is missing, before one rename puts it in place. A kill
leaves the old one, none or the new one; none is never taken for a new log, and repeating the restore is always safe.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator

from msgspec import Struct

from idumb.app.ports import Clock
from idumb.domain import canonical_json, health
from idumb.domain.errors import StoreError
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.event import GENESIS, ChainCheck, NewEvent
from idumb.store import backups, connection, event_chain, event_log, owner_card, ownership
from idumb.store.backups import Newest
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.system import atomic_write

_RESTORED = frozenset({"store.corrupt", "store.missing", "store.older", "store.failed"})
_FIX = "idumb doctor --fix --accept-loss"


def checks(log: SqliteEventLog, worktree: str, clock: Clock, *, accept_loss: bool) -> tuple[Check, ...]:
    """`accept_loss`: a person agreed to go on without the events that no backup has."""
    look = _LogChecks(log.database, log.verify, worktree, clock, accept_loss)
    return (
        Check("store.opens", "the event log opens and is the newest one", look.opens, look.restore, alone=True),
        Check("store.chain", "no event was altered", look.chain, look.restore, alone=True),
        Check("store.owner", "no owner that cannot be stopped", look.owner),
    )


def owned(folder: str) -> bool:
    """Return whether some working tree seems to have a live owner. Takes no lock."""
    return any(owner_card.standing(card, path) != owner_card.DEAD for path, card in owner_card.all_cards(folder))


class _LogChecks(Struct, frozen=True):
    database: Database
    verify: Callable[[], ChainCheck]
    worktree: str
    clock: Clock
    accept_loss: bool

    def opens(self) -> Iterator[Symptom]:
        try:
            seq, _ = self.database.read(connection.head, (0, GENESIS))
        except StoreError as error:
            yield self._of(error)
        else:
            yield health.passed(f"{seq} events" if seq else "nothing was recorded yet")

    def chain(self) -> Iterator[Symptom]:
        try:
            self.database.read(connection.head, (0, GENESIS))
        except StoreError:
            return  # reported by `store.opens`
        try:
            result = self.verify()
        except StoreError as error:
            yield self._of(error)
            return
        if result.broken_at is None:
            yield health.passed(f"{result.count} events, head {result.head[:12]}")
            return
        lost = self.database.read(lambda db: backups.lost_archives(db, self.database.folder), list[str]())
        for name in lost:  # no backup has what is in it
            means = "it has the events of an archived run; the log is not damaged, and everything else works"
            fix = f"put {name} back, if you have a copy of the git folder"
            yield health.problem(
                f"{name} is missing or damaged", f"{self.database.folder}/archive", means=means, fix=fix
            )
        if not lost:
            yield self._restorable(f"event {result.broken_at}: {result.why}")

    def _of(self, error: StoreError) -> Symptom:
        if error.code in _RESTORED:
            return self._restorable(error.message)
        return health.problem(error.message, means="no command that needs it runs", fix=error.hint or "")

    def _restorable(self, found: str) -> Symptom:
        recovery = plan(self.database)
        fixes = recovery.is_whole or self.accept_loss
        return health.problem(found, means=recovery.words(), fix="" if fixes else _FIX, fixes=fixes)

    def restore(self, _: Symptom) -> str:
        """Run under the locks of every working tree, because they share the log."""
        with ownership.held_all(self.database.folder, self.worktree):
            recovery = plan(self.database)
            kept = restore(self.database, recovery, self.clock)
        beside = f"; the old file is {kept}" if kept else ""
        return f"the event log was restored: {recovery.words()}{beside}"

    def owner(self) -> Iterator[Symptom]:
        for path, card in owner_card.all_cards(self.database.folder):
            standing = owner_card.standing(card, path)
            who = f"process {card.get('pid', '?')} on {card.get('host', '?')}: {card.get('command', '?')}"
            if standing == owner_card.DEAD:
                yield health.passed(f"{who} has ended, and the next command takes over")
            elif standing != owner_card.RUNNING:
                how = "is stopped" if standing == owner_card.STOPPED else "cannot be seen from here"
                yield health.warn(f"{who} {how}", path, means="it owns its working tree", fix="idumb stop")
            else:
                yield health.passed(f"{who} is running")


class Recovery(Struct, frozen=True):
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
        return f"{have}; the later ones, up to event {self.known.seq} at least, are missing"


def plan(database: Database) -> Recovery:
    """Return what can be restored. Changes nothing."""
    path, events = database.backups.newest_good() or (None, 0)
    return Recovery(path, events, database.backups.newest())


def restore(database: Database, recovery: Recovery, clock: Clock) -> str:
    """Put the backup in place, or an empty log. The caller holds the locks of all working trees.

    Return where the old file is now, "" if there was none. Raises StoreError and OSError; then call it again.
    """
    database.close()
    fresh = f"{database.path}.new"
    with connection.translated(database.path):
        kept = backups.set_aside(database.path, "damaged") if os.path.lexists(database.path) else ""
        _copy(recovery.backup, fresh)
        newest = _with_gap(fresh, database, recovery, clock.now(), kept)
        database.backups.record(newest)
        journal = f"{database.path}-journal"
        if os.path.lexists(journal) and os.path.getsize(journal):
            backups.set_aside(journal, "damaged")  # beside the new file, SQLite would replay it
        os.replace(fresh, database.path)
        atomic_write.sync_folder(database.folder)
        newer = itertools.takewhile(lambda path: path != recovery.backup, database.backups.paths())
        for damaged in newer:  # they would count as the newest ones
            backups.set_aside(damaged, "damaged")
        with contextlib.closing(sqlite3.connect(database.path)) as restored:
            database.backups.back_up(restored, newest.seq)  # else the next loss would lose this repair
    return kept


def _copy(backup: str | None, fresh: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:" if backup is None else backup)) as source:
        if backup is None:
            event_chain.create(source)
        backups.copy(source, fresh)


def _with_gap(fresh: str, database: Database, recovery: Recovery, at: str, kept: str) -> Newest:
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
            [(NewEvent("log.restored", payload), text)], seq, heads, operation="doctor", fence=fence, at=at
        )
        new.execute(event_log.INSERT, row)
    return Newest(row[event_chain.SEQ], row[event_chain.HASH], os.stat(database.folder).st_ino, fence)
