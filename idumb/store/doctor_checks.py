"""Checks of `idumb doctor` on the event log: it opens, is whole, and is the one that its witnesses know."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from idumb.domain import health
from idumb.domain.errors import StoreError
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.event import GENESIS, ChainCheck
from idumb.lazy_dataclass import dataclass
from idumb.store import anchor, owner_card, ownership, rebuild, segments
from idumb.store.connection import Database
from idumb.store.witnesses import AnchoredCopy

_REBUILT = frozenset({"store.corrupt", "store.missing", "store.older", "store.failed", "store.segment"})


def checks(common_dir: str, database: Database, verify: Callable[[], ChainCheck], worktree: str) -> tuple[Check, ...]:
    log = _LogChecks(common_dir, database, verify, worktree)
    return (
        Check(
            "store.opens",
            "the event log opens and is the newest one",
            log.opens,
            log.rebuild,
            alone=True,
        ),
        Check("store.chain", "no event was altered", log.chain, log.rebuild, alone=True),
        Check("store.copy", "the copy of the event log in the state directory is sound", log.copy, log.renew_copy),
        Check("store.anchor", "the anchor matches the event log", log.anchor, log.set_anchor),
        Check("store.owner", "no stale lock", log.owner, log.forget_owner),
    )


def owned(folder: str) -> bool:
    """Return whether some working tree seems to have a live owner. Takes no lock."""
    return any(owner_card.standing(card) != owner_card.DEAD for _, card in owner_card.all_cards(folder))


@dataclass(frozen=True, slots=True)
class _LogChecks:
    common_dir: str
    database: Database
    verify: Callable[[], ChainCheck]
    worktree: str

    def opens(self) -> Iterator[Symptom]:
        try:
            seq, _ = self.database.read(segments.head, (0, GENESIS))
        except StoreError as error:
            yield self._symptom(error)
        else:
            yield health.passed(f"{seq} events" if seq else "nothing was recorded yet")

    def _symptom(self, error: StoreError) -> Symptom:
        recoverable = rebuild.plan(self.common_dir, self.database.kept_refs) if error.code in _REBUILT else None
        possible = recoverable is not None and recoverable.possible
        means = recoverable.words if recoverable is not None else "no command that needs it runs"
        fix = (rebuild.RESTORE if recoverable is not None else error.hint or "") if not possible else ""
        return health.problem(error.message, means=means, fix=fix, fixes=possible)

    def chain(self) -> Iterator[Symptom]:
        try:
            self.database.read(segments.head, (0, GENESIS))
        except StoreError:
            return  # reported by `store.opens`
        try:
            result = self.verify()
        except StoreError as error:
            yield self._symptom(error)
            return
        if result.broken_at is None:
            yield health.passed(f"{result.count} events, head {result.head[:12]}")
            return
        recoverable = rebuild.plan(self.common_dir, self.database.kept_refs)
        yield health.problem(
            f"event {result.broken_at}: {result.why}",
            means=recoverable.words or "later events cannot be trusted",
            fix="" if recoverable.possible else "Keep a copy of the git folder before anything else",
            fixes=recoverable.possible,
        )

    def rebuild(self, _: Symptom) -> str:
        """Run under the locks of every working tree, because they share the log."""
        with ownership.held_all(self.database.folder, self.worktree):
            self.database.close()
            report = rebuild.rebuild(self.common_dir, self.database.kept_refs)
        kept = f"; the old content is in {report.set_aside}" if report.set_aside else ""
        return f"the event log was rebuilt with {report.events} events from {report.source}{kept}"

    def copy(self) -> Iterator[Symptom]:
        anchored = AnchoredCopy(self.common_dir)
        why = anchored.problem()
        if why is not None:
            means = "the copy is ignored, so an older log might go unnoticed"
            yield health.problem(why, anchored.path, means=means, fix=f"ls -ld {os.path.dirname(anchored.path)}")
            return
        damaged = anchored.damaged()
        if damaged:
            words = f"{damaged} of its lines cannot be read"
            means = "the event log is whole and can rebuild it" if self._is_whole() else "it may not help the log"
            yield health.warn(words, anchored.path, means=means, fixes=self._is_whole())
        elif not os.path.lexists(anchored.path) and self._is_whole():
            yield health.warn("it is missing", anchored.path, means="the next command rebuilds it", fixes=True)
        else:
            yield health.passed(anchored.path)

    def _is_whole(self) -> bool:
        try:
            return self.verify().broken_at is None and self.database.read(segments.head, (0, GENESIS))[0] > 0
        except StoreError:
            return False

    def renew_copy(self, symptom: Symptom) -> str:
        kept = AnchoredCopy(self.common_dir).set_aside() if os.path.lexists(symptom.path) else ""
        self.database.set_anchor()
        return f"{symptom.path} was rebuilt from the event log" + (f"; the old content is in {kept}" if kept else "")

    def anchor(self) -> Iterator[Symptom]:
        path = os.path.join(self.database.folder, "anchor.json")
        try:
            seq, _ = self.database.read(segments.head, (0, GENESIS))
        except StoreError:
            return
        recorded = anchor.read(path)
        # An owner writes it on release, so during the first run it still describes an empty log.
        if seq and (recorded is None or recorded.seq == 0) and not owned(self.database.folder):
            yield health.warn(
                "it is missing" if recorded is None else "it cannot be read",
                path,
                means="without the user's state directory, an older log would go unnoticed",
                fixes=True,
            )

    def set_anchor(self, symptom: Symptom) -> str:
        self.database.set_anchor()
        return f"{symptom.path} was written again"

    def owner(self) -> Iterator[Symptom]:
        for path, card in owner_card.all_cards(self.database.folder):
            standing = owner_card.standing(card)
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
                how = "is stopped" if standing == owner_card.STOPPED else "may run on another machine"
                yield health.warn(f"{who} {how}", path, means="it owns its working tree", fix="idumb stop")
            else:
                yield health.passed(f"{who} is running")

    def forget_owner(self, symptom: Symptom) -> str:
        """Remove the card of a dead owner, in this or another working tree; return what was done."""
        own = os.path.join(self.database.folder, "worktrees", self.worktree)
        if os.path.dirname(symptom.subject) == own:
            return f"{symptom.subject} named a dead owner; this command took over the working tree"
        lock = ownership.take(os.path.join(os.path.dirname(symptom.subject), "owner.lock"))
        try:
            if lock is None or owner_card.standing(owner_card.read(symptom.subject)) != owner_card.DEAD:
                return f"{symptom.subject} belongs to another owner now"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(symptom.subject)
        finally:
            if lock is not None:
                lock.release()
        return f"{symptom.subject} named a dead owner and was removed"
