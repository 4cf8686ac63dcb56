"""One owner per work tree: an advisory lock that dies with its process, and a fencing token that outlives it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from idumb.app import ports
from idumb.domain.errors import Refusal, StoreError
from idumb.store import connection
from idumb.system import atomic, folders, host

if TYPE_CHECKING:
    import filelock


class FileOwnership:
    """Implements the port `Ownership`. The lock is the truth; `owner.json` beside it only tells who has it."""

    def __init__(self, database: connection.Database, worktree: str, clock: ports.Clock) -> None:
        self._database = database
        self._worktree = worktree
        self._clock = clock
        self._folder = os.path.join(database.folder, "worktrees", worktree)
        self._card = os.path.join(self._folder, "owner.json")
        self._lock: filelock.BaseFileLock | None = None

    def acquire(self, command: str) -> int:
        if self._lock is not None:
            raise _held(self._holder())
        with connection.translated(self._folder):
            folders.make_private(self._folder)
            lock = self._locked()
        try:
            since = self._clock.now()
            with connection.translated(self._card):
                _write_card(self._card, command, since)
            fence = self._database.write(functools.partial(_next_fence, self._worktree, command, since))
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        return fence

    def release(self) -> None:
        """Does nothing where this process is not the owner. Never raises: it runs while other errors are on their way.

        The anchor may stay behind and the card may stay, for neither is the truth.
        """
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        try:
            with contextlib.suppress(StoreError, OSError):
                self._database.set_anchor()
            with contextlib.suppress(OSError):
                os.unlink(self._card)
        finally:
            lock.release()

    def check(self, fence: int) -> bool:
        if self._lock is None:
            return False
        return self._database.read(functools.partial(_fence, self._worktree), None) == fence

    def holder(self) -> Mapping[str, Any] | None:
        """Who seems to own the work tree: pid, host, since, command; None when nobody does. Creates nothing.

        Told from the card and the process table: trying the lock could make a real owner fail.
        """
        known = self._holder()
        return known if known and _lives(known) else None

    def _locked(self) -> filelock.BaseFileLock:
        import filelock

        lock = filelock.FileLock(os.path.join(self._folder, "owner.lock"), timeout=0, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise _held(self._holder()) from None
        except NotImplementedError as error:
            raise StoreError("lock.unsupported", f"this file system has no locks: {self._folder}") from error
        return lock

    def _holder(self) -> Mapping[str, Any]:
        try:
            with open(self._card, encoding="utf-8") as stream:
                known = json.load(stream)
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def _lives(card: Mapping[str, Any]) -> bool:
    if card.get("host") != host.name():
        return True
    if card.get("boot") != host.boot_id():
        return False
    pid = card.get("pid")
    return isinstance(pid, int) and host.process_alive(pid) and card.get("started") == host.process_started(pid)


def _write_card(path: str, command: str, since: str) -> None:
    pid = os.getpid()
    card = {
        "pid": pid,
        "started": host.process_started(pid),
        "boot": host.boot_id(),
        "host": host.name(),
        "command": command,
        "since": since,
    }
    # Not durable: after a power cut there is no holder to tell about.
    atomic.write(path, json.dumps(card, sort_keys=True).encode() + b"\n", durable=False, mode=0o600)


def _next_fence(worktree: str, command: str, since: str, db: sqlite3.Connection) -> int:
    fence = (_fence(worktree, db) or 0) + 1
    db.execute(
        "INSERT INTO owners (worktree, fence, command, since) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (worktree) DO UPDATE SET fence = excluded.fence, command = excluded.command,"
        " since = excluded.since",
        (worktree, fence, command, since),
    )
    return fence


def _fence(worktree: str, db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT fence FROM owners WHERE worktree = ?", (worktree,)).fetchone()
    return None if row is None else int(row[0])


def _held(holder: Mapping[str, Any]) -> Refusal:
    who = "another idumb"
    if holder:
        who = "process {pid} on {host}, since {since}: {command}".format(
            **{name: holder.get(name, "?") for name in ("pid", "host", "since", "command")}
        )
    return Refusal(
        "lock.held",
        f"this work tree is in use by {who}",
        hint="wait for it to end; `idumb status` shows what it does",
        details=holder,
    )
