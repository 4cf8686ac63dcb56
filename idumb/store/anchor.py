"""The anchor: a small file beside the database that says how far the event log had come, and what the file was.

A database that is gone or older than its anchor is refused and never replaced by an empty one. The anchor is
written when the database is made and when an owner lets go, so it may lag behind, but never runs ahead. It stands
in for the copy in the state directory where that one is gone, and it alone knows every byte of the file.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS
from idumb.system.files import atomic_write

LIMIT = 16 * 1024 * 1024
"""Databases up to this many bytes are looked through as a whole when they are opened."""

# What the first version wrote: without a check of its own.
_FIRST = {"seq", "hash"}


@dataclass(frozen=True, slots=True)
class Anchor:
    """`counter` is SQLite's change counter at the time, `digest` the SHA-256 of the file; "" where it was too large."""

    seq: int = 0
    hash: str = GENESIS
    counter: int = 0
    digest: str = ""


def write(path: str, anchor: Anchor) -> None:
    known = {"seq": anchor.seq, "hash": anchor.hash, "counter": anchor.counter, "digest": anchor.digest}
    text = json.dumps({**known, "check": canonical_json.digest(known)}, sort_keys=True)
    atomic_write.write(path, text.encode("ascii") + b"\n", mode=0o600)


def read(path: str) -> Anchor | None:
    """None when there is no anchor. A damaged one only says that a database was made."""
    try:
        with open(path, "rb") as stream:
            known: dict[str, Any] = canonical_json.decode(stream.read())
        if set(known) != _FIRST and known.pop("check") != canonical_json.digest(known):
            return Anchor()
        return Anchor(**known)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return Anchor()


def exists(path: str) -> bool:
    return os.path.exists(path)


def of(connection: sqlite3.Connection, seq: int, head: str) -> Anchor:
    """What to record about a database, as this connection sees it now."""
    counter, digest = _image(connection)
    return Anchor(seq, head, counter, digest)


def altered(connection: sqlite3.Connection, anchor: Anchor) -> bool | None:
    """Whether bytes changed though SQLite never wrote since; None where that cannot be told."""
    if not anchor.digest:
        return None
    counter, digest = _image(connection)
    return digest != anchor.digest if digest and counter == anchor.counter else None


def size(connection: sqlite3.Connection) -> int:
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return pages * page


def _image(connection: sqlite3.Connection) -> tuple[int, str]:
    """(change counter, digest) of the file. SQLite reads it: a file of our own to it would drop SQLite's locks."""
    import hashlib

    if size(connection) > LIMIT:
        return 0, ""
    data = connection.serialize()
    return int.from_bytes(data[24:28], "big"), hashlib.sha256(data).hexdigest()
