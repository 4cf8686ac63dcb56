"""Checks of `idumb doctor` on the event log: it opens, is whole, and is the newest one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from idumb.app.ports.process import Clock
from idumb.domain import health
from idumb.domain.errors import StoreError
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.event import GENESIS, ChainCheck
from idumb.lazy_dataclass import dataclass
from idumb.store import connection, owner_card, ownership, restore
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog

_RESTORED = frozenset({"store.corrupt", "store.missing", "store.older", "store.failed"})
FIX = "idumb doctor --fix --accept-loss"


def checks(log: SqliteEventLog, worktree: str, clock: Clock, *, accept_loss: bool) -> tuple[Check, ...]:
    """`accept_loss`: a person agreed to go on without the events that no backup has."""
    look = _LogChecks(log.database, log.verify, worktree, clock, accept_loss)
    return (
        Check("store.opens", "the event log opens and is the newest one", look.opens, look.restore, alone=True),
        Check("store.chain", "no event was altered", look.chain, look.restore, alone=True),
        Check("store.owner", "no stale lock", look.owner, look.forget_owner),
    )


def owned(folder: str) -> bool:
    """Return whether some working tree seems to have a live owner. Takes no lock."""
    return any(owner_card.standing(card, path) != owner_card.DEAD for path, card in owner_card.all_cards(folder))


@dataclass(frozen=True, slots=True)
class _LogChecks:
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
        else:
            yield self._restorable(f"event {result.broken_at}: {result.why}")

    def _of(self, error: StoreError) -> Symptom:
        if error.code in _RESTORED:
            return self._restorable(error.message)
        return health.problem(error.message, means="no command that needs it runs", fix=error.hint or "")

    def _restorable(self, found: str) -> Symptom:
        recovery = restore.plan(self.database)
        fixes = recovery.is_whole or self.accept_loss
        return health.problem(found, means=recovery.words(), fix="" if fixes else FIX, fixes=fixes)

    def restore(self, _: Symptom) -> str:
        """Run under the locks of every working tree, because they share the log."""
        with ownership.held_all(self.database.folder, self.worktree):
            recovery = restore.plan(self.database)
            kept = restore.restore(self.database, recovery, self.clock)
        beside = f"; the old file is {kept}" if kept else ""
        return f"the event log was restored: {recovery.words()}{beside}"

    def owner(self) -> Iterator[Symptom]:
        for path, card in owner_card.all_cards(self.database.folder):
            standing = owner_card.standing(card, path)
            who = f"process {card.get('pid', '?')} on {card.get('host', '?')}: {card.get('command', '?')}"
            if standing == owner_card.DEAD:
                yield health.warn(
                    f"{who} ended without releasing it",
                    path,
                    means="the next command takes over",
                    fixes=True,
                    subject=path,
                )
            elif standing != owner_card.RUNNING:
                how = "is stopped" if standing == owner_card.STOPPED else "cannot be seen from here"
                yield health.warn(f"{who} {how}", path, means="it owns its working tree", fix="idumb stop")
            else:
                yield health.passed(f"{who} is running")

    def forget_owner(self, symptom: Symptom) -> str:
        """Remove the card of a dead owner, in this or another working tree; return what was done."""
        own = os.path.join(self.database.folder, "worktrees", self.worktree)
        if os.path.dirname(symptom.subject) == own:
            return f"{symptom.subject} named a dead owner; this command took over the working tree"
        lock = owner_card.take(owner_card.lock_of(symptom.subject))
        try:
            if lock is None:
                return f"{symptom.subject} belongs to another owner now"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(symptom.subject)
        finally:
            if lock is not None:
                lock.release()
        return f"{symptom.subject} named a dead owner and was removed"
