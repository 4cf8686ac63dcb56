"""One owner per working tree: an advisory lock that ends with its process, and a fencing token that outlives it.

A takeover raises the token; by force, it replaces the lock file of an owner that cannot be seen from here. That owner
therefore notices before each effect, and the log refuses its token.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.app.ports import Clock, StopRequest
from idumb.domain.action import Action
from idumb.domain.errors import Refusal, StoreError
from idumb.store import connection, owner_card
from idumb.store.owner_card import OwnerLock
from idumb.system import atomic_write, private_folders, process_end, process_tree

# A program that a dead owner was about to start can keep its lock for a moment.
PATIENCE = 1.0
ASKED_SECONDS = 10.0
_GRACE = 2.0
_LOOKS = 20
_FENCE = "SELECT fence FROM owners WHERE worktree = ?"


class FileOwnership:
    """The lock decides; `owner.json` beside it only informs."""

    def __init__(self, database: connection.Database, worktree: str, clock: Clock) -> None:
        self._database = database
        self._worktree = worktree
        self._clock = clock
        self._folder = os.path.join(database.folder, "worktrees", worktree)
        self._card = os.path.join(self._folder, owner_card.CARD)
        self._request = os.path.join(self._folder, "stop.json")
        self._lock_file = os.path.join(self._folder, owner_card.LOCK)
        self._lock: OwnerLock | None = None
        self._fence = 0
        self._lost = False
        database.guard = self.guard

    def acquire(self, command: str, *, force: bool = False) -> int:
        """Return the fencing token. Refusal `lock.held` or `lock.elsewhere` describes the holder.

        `force` takes the working tree from an owner that cannot be seen from here.
        """
        if self._lock is not None:
            raise owner_card.held(owner_card.read(self._card), owner_card.RUNNING)
        with connection.translated(self._folder):
            private_folders.make(self._folder)
            lock = self._taken(force=force)
        self._lost = False
        try:
            self._fence = self._announced(lock, command)
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        return self._fence

    def release(self) -> None:
        """Do nothing if this process is not the owner. Never raises, because it runs while other errors propagate.

        A backup may be missing and the card stay behind, because neither decides. An owner that lost the working tree
        leaves everything to the new one.
        """
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        self._lost = self._lost or not lock.holds()
        try:
            if not self._lost:
                with contextlib.suppress(StoreError, OSError):
                    self._database.record_newest(back_up=self._database.backup_is_due)
                for path in (self._request, self._card):
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        finally:
            lock.release()

    def guard(self) -> None:
        """Refusal `lock.lost` if another process took the working tree. A process that never was the owner passes.

        It costs two microseconds: call it before each effect.
        """
        if self._lost or (self._lock is not None and not self._lock.holds()):
            self._lost = True
            raise lost()

    def holder(self) -> Mapping[str, Any] | None:
        """Return the apparent owner: pid, host, since, command, standing; None if there is none. Creates nothing."""
        return owner_card.holder(self._card)

    def ask(self, holder: Mapping[str, Any], by: str, why: str) -> bool:
        """Ask the owner to stop. Return whether it released the working tree within ten seconds.

        A stopped one cannot.
        """
        self._write_request(holder, by, why, after_task=False)
        if not self._signal(holder, signal.SIGTERM):
            return True
        if holder["standing"] == owner_card.STOPPED:
            return False
        for _ in range(int(ASKED_SECONDS * _LOOKS)):
            if self._has_released(holder):
                return True
            process_end.wait_for_end(holder["pid"], holder.get("started"), 1 / _LOOKS)
        return self._has_released(holder)

    def end(self, holder: Mapping[str, Any]) -> None:
        """Kill the owner, like a power cut, and everything that it started."""
        if self._has_released(holder):
            return  # its process number, and its children's, may be reused by now
        below = process_tree.descendants([holder["pid"]])[1:]
        started = {pid: process_tree.process_started(pid) for pid in below}
        self._signal(holder, signal.SIGKILL)
        process_end.wait_for_end(holder["pid"], holder.get("started"), _GRACE)
        # git removes its locks when it is asked to end
        _send(started, signal.SIGTERM, signal.SIGCONT)
        process_end.wait_gone(below, _GRACE)
        _send(started, signal.SIGKILL)

    def ask_to_stop_after_task(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        """Ask the holder to stop after its current task."""
        self._write_request(holder, by, why, after_task=True)

    def stop_request(self) -> StopRequest | None:
        """Return the request to this owner. One to an earlier owner has another token."""
        request = owner_card.read(self._request)
        if not self._fence or request.get("fence") != self._fence:
            return None
        return StopRequest(str(request.get("by")), str(request.get("why")), bool(request.get("after_task")))

    def _taken(self, *, force: bool) -> OwnerLock:
        card: owner_card.Card = {}
        state = owner_card.DEAD
        for _ in range(int(PATIENCE * _LOOKS)):
            if (lock := owner_card.take(self._lock_file)) is not None:
                return lock
            card = owner_card.read(self._card)
            state = owner_card.standing(card, self._card) if card else owner_card.DEAD
            if state in {owner_card.RUNNING, owner_card.STOPPED}:
                raise owner_card.held(card, state)
            time.sleep(1 / _LOOKS)
        if force or (card and state == owner_card.DEAD):  # something inherited the lock of a dead owner
            return owner_card.replace(self._lock_file)
        raise owner_card.held(card, state)

    def _announced(self, lock: OwnerLock, command: str) -> int:
        """Write the card, take the token, write the card again: an owner that waits for the database is visible."""
        since = self._clock.now()
        before = owner_card.read(self._card).get("namespace")
        with connection.translated(self._card):
            owner_card.write(self._card, command, since, None, before)
        fence = self._database.write(functools.partial(_next_fence, self._worktree, command, since, lock))
        if not lock.holds():
            raise lost()  # a card written now would overwrite that of the new owner
        with connection.translated(self._card):
            owner_card.write(self._card, command, since, fence, before)
        return fence

    def _write_request(self, holder: Mapping[str, Any], by: str, why: str, *, after_task: bool) -> None:
        fields = {"fence": holder.get("fence"), "by": by, "why": why, "after_task": after_task, "at": self._clock.now()}
        with connection.translated(self._request):
            atomic_write.write(self._request, json.dumps(fields).encode() + b"\n", durable=False, mode=0o600)

    def _signal(self, holder: Mapping[str, Any], number: int) -> bool:
        """Return whether the owner still lives. Only a process that holds the lock is ever signalled."""
        if self._has_released(holder):
            return False
        try:
            return process_end.signal_process(holder["pid"], holder.get("started"), number)
        except PermissionError:
            raise Refusal(
                "stop.not-allowed",
                f"process {holder['pid']} belongs to another user, and only that user can stop it",
                hint=Action("status"),
            ) from None

    def _has_released(self, holder: Mapping[str, Any]) -> bool:
        """Return whether the owner on the card has ended, or no longer has the lock."""
        card = owner_card.read(self._card)
        if any(card.get(name) != holder.get(name) for name in ("pid", "started", "since")):
            return True
        if not process_tree.process_is(holder["pid"], holder.get("started")):
            return True
        return owner_card.is_free(self._lock_file)


def _send(started: Mapping[int, int | None], *numbers: int) -> None:
    for number in numbers:
        for pid, since in started.items():
            with contextlib.suppress(PermissionError):
                process_end.signal_process(pid, since, number)


def _next_fence(worktree: str, command: str, since: str, lock: OwnerLock, db: sqlite3.Connection) -> int:
    """Read inside the transaction, so that of two takeovers only the later one keeps its token."""
    if not lock.holds():
        raise lost()
    row = db.execute(_FENCE, (worktree,)).fetchone()
    fence = (row[0] if row else 0) + 1
    db.execute(
        "INSERT INTO owners (worktree, fence, command, since) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (worktree) DO UPDATE SET fence = excluded.fence, command = excluded.command,"
        " since = excluded.since",
        (worktree, fence, command, since),
    )
    return fence


def lost() -> Refusal:
    return Refusal(
        "lock.lost",
        "This process no longer owns the working tree: another one took it over, or its lock file was removed."
        " It writes nothing more here.",
        hint=Action("doctor"),
    )


@contextlib.contextmanager
def held_all(folder: str, also: str | None = None) -> Iterator[None]:
    """Take all locks; Refusal `lock.held` if one has an owner. `also` may have no folder yet."""
    if also is not None:
        private_folders.make(os.path.join(folder, "worktrees", also))
    with contextlib.ExitStack() as stack:
        for name in owner_card.worktrees(folder):
            stack.callback(_taken_in(os.path.join(folder, "worktrees", name)).release)
        yield


def _taken_in(folder: str) -> OwnerLock:
    """Take the lock of a working tree. Refusal `lock.held` if it has an owner."""
    lock = owner_card.take(os.path.join(folder, owner_card.LOCK))
    if lock is None:
        card = owner_card.read(os.path.join(folder, owner_card.CARD))
        raise Refusal(
            "lock.held",
            f"working tree {os.path.basename(folder)} is in use by {owner_card.words(card)}",
            hint=Action("status"),
            details=card,
        )
    return lock
