"""Who holds a working tree: an advisory lock, which ends with its process, and a card for people and for `stop`.

The lock decides. The card tells whose it is, and whether that process can be seen from here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain.action import Action
from idumb.domain.errors import Refusal
from idumb.system import atomic_write, machine, named_files, private_folders, process_tree

RUNNING = "running"
STOPPED = "stopped"
DEAD = "dead"
ELSEWHERE = "elsewhere"
"""Some process has the lock, and none that can be seen from here: it is in another container, or on another machine."""

CARD, LOCK = "owner.json", "owner.lock"
"""Files in the folder of a working tree."""


class OwnerLock:
    """A lock that this process took. `holds` is true until the file at the path is replaced or removed."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def holds(self) -> bool:
        return private_folders.is_at(self._path, self._descriptor)

    def release(self) -> None:
        private_folders.release_lock(self._descriptor)


def take(path: str) -> OwnerLock | None:
    """Return the lock, or None while another process holds it. Raises OSError."""
    descriptor = private_folders.take_lock(path)
    return None if descriptor is None else OwnerLock(path, descriptor)


def replace(path: str) -> OwnerLock:
    """Take the lock from its holder: put a new file, locked by this process, at the path."""
    fresh = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    descriptor = private_folders.take_lock(fresh)
    assert descriptor is not None  # noqa: S101 - nobody else knows the name
    os.rename(fresh, path)
    return OwnerLock(path, descriptor)


def is_free(path: str) -> bool:
    """Return whether no process holds the lock. It is held for a moment to find out."""
    with contextlib.suppress(OSError):
        if os.path.exists(path) and (lock := take(path)) is not None:
            lock.release()
            return True
    return False


Card = Mapping[str, Any]


def read(path: str) -> Card:
    """Return the card's content; empty if there is no readable one."""
    return named_files.read_object(path)


def holder(path: str) -> Card | None:
    """Return the card of the apparent owner, with `standing`; None if there is none."""
    card = read(path)
    state = standing(card, path) if card else DEAD
    return None if state == DEAD else {**card, "standing": state}


def write(path: str, command: str, since: str, fence: int | None, before: str | None = None) -> None:
    """`before` is the process namespace of a killed owner, from its card."""
    pid = os.getpid()
    card = {
        "pid": pid,
        "started": process_tree.process_started(pid),
        "host": machine.name(),
        "namespace": machine.process_namespace(),
        "namespace_before": before,
        "lock": _lock_of(path),
        "command": command,
        "since": since,
        "fence": fence,
    }
    # Not durable: after a power cut there is no owner to describe.
    atomic_write.write(path, json.dumps(card, sort_keys=True).encode() + b"\n", durable=False, mode=0o600)


def standing(card: Card, path: str) -> str:
    """Return the state of the process on the card at `path`; a process that can be seen need not be asked for its lock.

    In another container or on another machine, the lock tells whether there is one. In a copy of the repository, it is
    another file than that of the owner.
    """
    if (card.get("host"), card.get("namespace")) != (machine.name(), machine.process_namespace()):
        return DEAD if is_free(os.path.join(os.path.dirname(path), LOCK)) else ELSEWHERE
    pid = card.get("pid")
    is_copy = card.get("lock") != _lock_of(path)
    if is_copy or not isinstance(pid, int) or not process_tree.process_is(pid, card.get("started")):
        return DEAD
    return STOPPED if process_tree.process_is_stopped(pid) else RUNNING


def _lock_of(path: str) -> int | None:
    """Return what tells the lock beside a card from its copies."""
    lock = os.path.join(os.path.dirname(path), LOCK)
    return os.stat(lock).st_ino if os.path.exists(lock) else None


def worktrees(folder: str) -> list[str]:
    """Return the names of the working trees that used idumb; `folder` is `<common dir>/idumb`."""
    place = os.path.join(folder, "worktrees")
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def all_cards(folder: str) -> Iterator[tuple[str, Card]]:
    """Yield (path, card) of every owner that left one, dead or alive."""
    for name in worktrees(folder):
        path = os.path.join(folder, "worktrees", name, CARD)
        card = read(path)
        if card:
            yield path, card


def words(holder: Card) -> str:
    """Return `process 7 on host, since 2026-01-02 03:04:05 UTC: resume`."""
    pid, host, since, command = (str(holder.get(name, "?")) for name in ("pid", "host", "since", "command"))
    return f"process {pid} on {host}, since {since[:19].replace('T', ' ')} UTC: {command}"


def held(holder: Card, state: str) -> Refusal:
    """Return the refusal of a command that needs the working tree; `state` is the standing of its holder."""
    who = words(holder) if holder else "another idumb"
    if state == ELSEWHERE:
        return Refusal(
            "lock.elsewhere",
            f"this working tree is in use by {who}, which cannot be seen from here",
            hint=f"stop it on {holder.get('host', 'that machine')}; idumb stop --force takes the working tree from it",
            details=holder,
        )
    is_stopped = state == STOPPED
    return Refusal(
        "lock.held",
        f"this working tree is in use by {who}{', which is stopped' if is_stopped else ''}",
        hint=Action.of("stop", "--force") if is_stopped else Action("status"),
        details=holder,
    )
