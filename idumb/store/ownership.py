"""One owner per work tree: an advisory lock that dies with its process, and a fencing token that outlives it.

Whoever takes a work tree over raises the token, and replaces the lock file where the owner before cannot be proven
dead. So an owner that was stopped and goes on later finds out before each effect, and the log refuses its token.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sqlite3
from collections.abc import Mapping
from typing import Any

from idumb.app.ports.host import Clock
from idumb.domain.errors import Refusal, StoreError
from idumb.store import connection, owner_card
from idumb.system import host_identity
from idumb.system.files import atomic_write, user_folders
from idumb.system.processes import process_tree

# A dead owner's lock can be kept for a moment by a program that it was about to start.
PATIENCE = 1.0
ASKED_SECONDS = 10.0
_GRACE = 2.0
_LOOKS = 20


class FileOwnership:
    """Implements the port `Ownership`. The lock is the truth; `owner.json` beside it only tells who has it."""

    def __init__(self, database: connection.Database, worktree: str, clock: Clock) -> None:
        self._database = database
        self._worktree = worktree
        self._clock = clock
        self._folder = os.path.join(database.folder, "worktrees", worktree)
        self._card = os.path.join(self._folder, "owner.json")
        self._request = os.path.join(self._folder, "cancel.json")
        self._pause = os.path.join(self._folder, "pause.json")
        self._path = os.path.join(self._folder, "owner.lock")
        self._lock: OwnerLock | None = None
        self._fence = 0
        self._lost = False
        self._overtaken: Mapping[str, Any] | None = None
        database.guard = self.guard

    def acquire(self, command: str, *, force: bool = False) -> int:
        """The next token. `force` takes the work tree from an owner that cannot be proven dead."""
        if self._lock is not None:
            raise _held(owner_card.read(self._card))
        with connection.translated(self._folder):
            user_folders.make_private(self._folder)
            lock = self._taken(force=force)
            self._overtaken = self._still_there()
        self._lost = False
        try:
            self._fence = self._announced(lock, command)
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        return self._fence

    def release(self) -> None:
        """Does nothing where this process is not the owner. Never raises: it runs while other errors are on their way.

        The anchor may stay behind and the card may stay, for neither is the truth. An owner that lost the work tree
        leaves everything to the new one.
        """
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        self._lost = self._lost or not lock.holds()
        try:
            if not self._lost:
                with contextlib.suppress(StoreError, OSError):
                    self._database.set_anchor()
                for path in (self._request, self._pause, self._card):
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        finally:
            lock.release()

    def check(self, fence: int) -> bool:
        if self._lock is None or not self._lock.holds():
            return False
        return self._database.read(functools.partial(_fence, self._worktree), None) == fence

    def guard(self) -> None:
        """Two microseconds, so before each effect: Refusal `lock.lost` when another process took the work tree.

        A process that never was its owner passes.
        """
        if self._lost or (self._lock is not None and not self._lock.holds()):
            self._lost = True
            raise lost()

    def holder(self) -> Mapping[str, Any] | None:
        """Who seems to own the work tree: pid, host, since, command, standing; None when nobody does. Creates nothing.

        Told from the card and the process table: trying the lock could make a real owner fail.
        """
        return owner_card.holder(self._card)

    def overtaken(self) -> Mapping[str, Any] | None:
        return self._overtaken

    def ask(self, holder: Mapping[str, Any], by: str) -> bool:
        """Ask the owner to stop; whether it let go of the work tree within ten seconds. A stopped one cannot."""
        self._leave_word(self._request, holder, by)
        if not self._signal(holder, signal.SIGTERM):
            return True
        if holder["standing"] == owner_card.STOPPED:
            return False
        for _ in range(int(ASKED_SECONDS * _LOOKS)):
            if self._let_go(holder):
                return True
            host_identity.wait_for_end(holder["pid"], holder.get("started"), 1 / _LOOKS)
        return self._let_go(holder)

    def end(self, holder: Mapping[str, Any]) -> None:
        """Kill the owner, as pulling the plug would, and everything that it had started."""
        if self._let_go(holder):
            return  # its number may be somebody else's by now, and so may what is below it
        below = process_tree.descendants([holder["pid"]])[1:]
        started = {pid: host_identity.process_started(pid) for pid in below}
        self._signal(holder, signal.SIGKILL)
        host_identity.wait_for_end(holder["pid"], holder.get("started"), _GRACE)
        # Git takes its locks away when it is asked to end.
        _send(started, signal.SIGTERM, signal.SIGCONT)
        process_tree.wait_gone(below, _GRACE)
        _send(started, signal.SIGKILL)

    def asked(self) -> str | None:
        """Who asked this owner to stop by `cancel`; None when nobody did."""
        known = owner_card.read(self._request)
        return str(known.get("by")) if self._fence and known.get("fence") == self._fence else None

    def ask_to_pause(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        self._leave_word(self._pause, holder, by, why=why)

    def pause_asked(self) -> tuple[str, str] | None:
        """(who, why); word that was left for an owner before this one has another token and does not count."""
        known = owner_card.read(self._pause)
        asked = self._fence and known.get("fence") == self._fence
        return (str(known.get("by")), str(known.get("why"))) if asked else None

    def _taken(self, *, force: bool) -> OwnerLock:
        known = owner_card.read(self._card)
        standing = owner_card.standing(known) if known else owner_card.DEAD
        if standing == owner_card.ELSEWHERE:
            return self._taken_from_elsewhere(known, force=force)
        lock = take(self._path)
        for _ in range(int(PATIENCE * _LOOKS)):
            if lock is not None or self._lives():
                break
            host_identity.pause(1 / _LOOKS)
            lock = take(self._path)
        if lock is not None:
            return lock
        known = owner_card.read(self._card)
        if known and owner_card.standing(known) == owner_card.DEAD:
            return replace(self._path)
        raise _held(known)

    def _taken_from_elsewhere(self, known: Mapping[str, Any], *, force: bool) -> OwnerLock:
        """Locks may not reach from one machine to another, so a free one proves nothing there."""
        if force:
            return replace(self._path)
        # In another container of this machine the lock is the truth.
        lock = take(self._path) if owner_card.here(known) else None
        if lock is None:
            raise elsewhere(known)
        return lock

    def _still_there(self) -> Mapping[str, Any] | None:
        """An owner takes its card away before it lets go. Where it lives and the card is there, its lock was taken."""
        known = self.holder()
        if known is None or known["standing"] == owner_card.ELSEWHERE or known.get("pid") == os.getpid():
            return None
        return known if known.get("fence") else None  # without a token it never became the owner

    def _lives(self) -> bool:
        known = owner_card.read(self._card)
        return bool(known) and owner_card.standing(known) != owner_card.DEAD

    def _announced(self, lock: OwnerLock, command: str) -> int:
        """Card, token, and the card with the token: an owner that waits for the database is seen as one."""
        since = self._clock.now()
        before = owner_card.read(self._card).get("namespace")
        with connection.translated(self._card):
            owner_card.write(self._card, command, since, None, before)
        fence = self._database.write(functools.partial(_next_fence, self._worktree, command, since, lock))
        if not lock.holds():
            raise lost()  # a card written now would stand over that of the new owner
        with connection.translated(self._card):
            owner_card.write(self._card, command, since, fence, before)
        return fence

    def _leave_word(self, path: str, holder: Mapping[str, Any], by: str, **more: str) -> None:
        word = {"fence": holder.get("fence"), "by": by, "at": self._clock.now(), **more}
        with connection.translated(path):
            atomic_write.write(path, json.dumps(word).encode() + b"\n", durable=False, mode=0o600)

    def _signal(self, holder: Mapping[str, Any], number: int) -> bool:
        """Whether the owner still lives; only a process that holds the lock is ever signalled."""
        if self._let_go(holder):
            return False
        try:
            return host_identity.signal_process(holder["pid"], holder.get("started"), number)
        except PermissionError:
            raise Refusal(
                "cancel.not-allowed",
                f"process {holder['pid']} belongs to another user, so it cannot be stopped from here",
                hint="idumb cancel, as that user",
            ) from None

    def _let_go(self, holder: Mapping[str, Any]) -> bool:
        """Whether the owner on the card has ended, or no longer has the lock."""
        known = owner_card.read(self._card)
        if (known.get("pid"), known.get("started"), known.get("since")) != (
            holder["pid"],
            holder.get("started"),
            holder.get("since"),
        ):
            return True
        if not host_identity.process_is(holder["pid"], holder.get("started")):
            return True
        lock = take(self._path)
        if lock is not None:
            lock.release()
        return lock is not None


def _send(started: Mapping[int, int | None], *numbers: int) -> None:
    for number in numbers:
        for pid, since in started.items():
            with contextlib.suppress(PermissionError):
                host_identity.signal_process(pid, since, number)


def _next_fence(worktree: str, command: str, since: str, lock: OwnerLock, db: sqlite3.Connection) -> int:
    """Looked at inside the transaction, so that of two that take over only the later one gets a token that lasts."""
    if not lock.holds():
        raise lost()
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


def lost() -> Refusal:
    return Refusal(
        "lock.lost",
        "This process owns the work tree no longer: another one took it over, or its lock file was removed."
        " Nothing more is written here.",
        hint="idumb doctor shows who holds it, and whether anything has to be mended",
    )


def _words(holder: Mapping[str, Any]) -> str:
    named = {name: holder.get(name, "?") for name in ("pid", "host", "since", "command")}
    return "process {pid} on {host}, since {since}: {command}".format(**named)


def _held(holder: Mapping[str, Any]) -> Refusal:
    stopped = bool(holder) and owner_card.standing(holder) == owner_card.STOPPED
    return Refusal(
        "lock.held",
        f"this work tree is in use by {_words(holder) if holder else 'another idumb'}"
        f"{', which is stopped' if stopped else ''}",
        hint="idumb cancel --force ends it; idumb resume then goes on"
        if stopped
        else "wait for it to end (`idumb status` shows where it is), or stop it: idumb cancel",
        details=holder,
    )


def elsewhere(holder: Mapping[str, Any]) -> Refusal:
    """Locks and processes of another machine cannot be seen from here, so a person has to look."""
    return Refusal(
        "lock.elsewhere",
        f"this work tree is in use by {_words(holder)}; from here nobody can tell whether that process still lives",
        hint=f"look on {holder.get('host', 'that machine')} whether process {holder.get('pid', '?')} runs;"
        " when it has ended for good: idumb cancel --force",
        details=holder,
    )


_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class OwnerLock:
    """A lock that this process took. `holds` is true until the file at the path is another one, or gone."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._process = os.getpid()
        self._key = _key(os.fstat(descriptor))

    def holds(self) -> bool:
        # A process that was forked off shares the descriptor, not the right to write.
        if self._process != os.getpid():
            return False
        try:
            return _key(os.stat(self._path, follow_symlinks=False)) == self._key
        except OSError:
            return False

    def release(self) -> None:
        """Closing would do, but for a program that inherited the descriptor by mistake."""
        if self._process == os.getpid():
            import filelock

            with contextlib.suppress(OSError):
                filelock.unlock_descriptor(self._descriptor)
        os.close(self._descriptor)


def take(path: str) -> OwnerLock | None:
    """The lock, or None while another process holds it. Raises OSError, and StoreError without locks."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            if not _locked(descriptor, path):
                os.close(descriptor)
                return None
            lock = OwnerLock(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if lock.holds():
            return lock
        lock.release()  # replaced between opening and locking


def replace(path: str) -> OwnerLock:
    """Take the lock away from whoever has it: a new file, held by this process, stands at the path."""
    fresh = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    descriptor = os.open(fresh, _FLAGS | os.O_EXCL, 0o600)
    try:
        _locked(descriptor, path)
        os.rename(fresh, path)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
    return OwnerLock(path, descriptor)


def _locked(descriptor: int, path: str) -> bool:
    import errno

    import filelock

    try:
        return filelock.lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno in {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}:
            raise StoreError("lock.unsupported", f"this file system has no locks: {os.path.dirname(path)}") from error
        raise


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
