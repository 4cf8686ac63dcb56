"""The owner card: who holds a working tree, for people and for `stop`. The lock decides; the card informs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.errors import Refusal
from idumb.store import owner_lock
from idumb.system import host_identity
from idumb.system.files import atomic_write

RUNNING = "running"
STOPPED = "stopped"
DEAD = "dead"
ELSEWHERE = "elsewhere"

Card = Mapping[str, Any]


def read(path: str) -> Card:
    """Return the card's content; empty if there is no readable one."""
    try:
        with open(path, encoding="utf-8") as stream:
            card = canonical_json.decode(stream.read())
    except (OSError, ValueError):
        return {}
    return card if isinstance(card, dict) else {}


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
        "started": host_identity.process_started(pid),
        "boot": host_identity.boot_id(),
        "host": host_identity.name(),
        "machine": host_identity.machine_id(),
        "namespace": host_identity.process_namespace(),
        "namespace_before": before,
        "command": command,
        "since": since,
        "fence": fence,
    }
    # Not durable: after a power cut there is no owner to describe.
    atomic_write.write(path, json.dumps(card, sort_keys=True).encode() + b"\n", durable=False, mode=0o600)


def here(card: Card) -> bool:
    """Return whether this machine booted at most once since, so that its locks can be trusted."""
    if card.get("boot") is not None and card.get("boot") == host_identity.boot_id():
        return True
    theirs, ours = card.get("machine"), host_identity.machine_id()
    if theirs is not None and ours is not None and theirs != ours:
        return False  # two machines may share a name
    return bool(card.get("host") == host_identity.name())


def standing(card: Card, path: str = "") -> str:
    """Return the state of the process on the card: running, stopped, provably dead, or unknown.

    Processes of another container are invisible; there the lock beside the card decides, if `path` is the card's.
    """
    if not here(card):
        return ELSEWHERE
    if card.get("boot") != host_identity.boot_id():
        return DEAD
    if card.get("namespace", host_identity.process_namespace()) != host_identity.process_namespace():
        return DEAD if path and owner_lock.is_free(lock_of(path)) else ELSEWHERE
    pid = card.get("pid")
    if not isinstance(pid, int) or not host_identity.process_is(pid, card.get("started")):
        return DEAD
    return STOPPED if host_identity.process_is_stopped(pid) else RUNNING


def lock_of(path: str) -> str:
    """Return the path of the lock beside a card."""
    return os.path.join(os.path.dirname(path), "owner.lock")


def worktrees(folder: str) -> list[str]:
    """Return the names of the working trees that used idumb; `folder` is `<common dir>/idumb`."""
    place = os.path.join(folder, "worktrees")
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def all_cards(folder: str) -> Iterator[tuple[str, Card]]:
    """Yield (path, card) of every owner that left one, dead or alive."""
    for name in worktrees(folder):
        path = os.path.join(folder, "worktrees", name, "owner.json")
        card = read(path)
        if card:
            yield path, card


def words(holder: Card) -> str:
    """Return `process 7 on host, since 2026-01-02 03:04:05 UTC: resume`."""
    pid, host, since, command = (str(holder.get(name, "?")) for name in ("pid", "host", "since", "command"))
    return f"process {pid} on {host}, since {since[:19].replace('T', ' ')} UTC: {command}"


def held(holder: Card) -> Refusal:
    stopped = bool(holder) and standing(holder) == STOPPED
    return Refusal(
        "lock.held",
        f"this working tree is in use by {words(holder) if holder else 'another idumb'}"
        f"{', which is stopped' if stopped else ''}",
        hint="idumb stop --force ends it; then idumb resume continues"
        if stopped
        else "wait for it to end (see idumb status), or stop it: idumb stop",
        details=holder,
    )


def elsewhere(holder: Card) -> Refusal:
    """Locks and processes of another machine are invisible here, so a person has to look."""
    return Refusal(
        "lock.elsewhere",
        f"this working tree is in use by {words(holder)}; idumb cannot tell from here whether that process still runs",
        hint=f"check on {holder.get('host', 'that machine')} whether process {holder.get('pid', '?')} still runs;"
        " once it has ended for good, run: idumb stop --force",
        details=holder,
    )
