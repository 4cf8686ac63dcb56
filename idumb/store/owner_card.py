"""The owner card: who holds a work tree, for people and for `cancel`. The lock is the truth, the card only tells."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.system import host_identity
from idumb.system.files import atomic_write

RUNNING = "running"
STOPPED = "stopped"
DEAD = "dead"
ELSEWHERE = "elsewhere"

Card = Mapping[str, Any]


def read(path: str) -> Card:
    """What the card says; empty when there is none, or one that cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            known = canonical_json.decode(stream.read())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def holder(path: str) -> Card | None:
    """The card of whoever seems to own the work tree, with `standing`; None when nobody does."""
    known = read(path)
    found = standing(known) if known else DEAD
    return None if found == DEAD else {**known, "standing": found}


def write(path: str, command: str, since: str, fence: int | None, before: str | None = None) -> None:
    """`before` is the space of processes in which an owner lived that was killed, as its card told."""
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
    # Not durable: after a power cut there is no holder to tell about.
    atomic_write.write(path, json.dumps(card, sort_keys=True).encode() + b"\n", durable=False, mode=0o600)


def here(card: Card) -> bool:
    """Whether this machine was booted once since, at most, and so its locks can be trusted."""
    if card.get("boot") is not None and card.get("boot") == host_identity.boot_id():
        return True
    known, ours = card.get("machine"), host_identity.machine_id()
    if known is not None and ours is not None and known != ours:
        return False  # two machines may have one name
    return bool(card.get("host") == host_identity.name())


def standing(card: Card) -> str:
    """What is known of the process on the card: it runs, is stopped, is provably dead, or nobody here can tell."""
    if not here(card):
        return ELSEWHERE
    if card.get("boot") != host_identity.boot_id():
        return DEAD
    if card.get("namespace", host_identity.process_namespace()) != host_identity.process_namespace():
        return ELSEWHERE
    pid = card.get("pid")
    if not isinstance(pid, int) or not host_identity.process_is(pid, card.get("started")):
        return DEAD
    return STOPPED if host_identity.process_is_stopped(pid) else RUNNING
