"""The anchor: a small file beside the database that records how far the event log had come, and the file's digest.

A database that is missing or older than its anchor is refused, and never replaced by an empty one. The anchor is
written when the database is created and when an owner releases it, so it may lag behind but never runs ahead. It
replaces the copy in the state directory if that is gone, and it alone covers every byte of the file.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS
from idumb.lazy_dataclass import dataclass
from idumb.store import segments
from idumb.system.files import atomic_write

LIMIT = 16 * 1024 * 1024
"""Databases up to this many bytes are hashed as a whole when they are opened."""

# Written by the first version, without a check of its own.
_FIRST = {"seq", "hash"}


@dataclass(frozen=True, slots=True)
class Anchor:
    """`counter` is SQLite's change counter at the time.

    `digest` is the SHA-256 of the file, or "" if it was too large.
    """

    seq: int = 0
    hash: str = GENESIS
    counter: int = 0
    digest: str = ""


def write(path: str, anchor: Anchor) -> None:
    fields = {"seq": anchor.seq, "hash": anchor.hash, "counter": anchor.counter, "digest": anchor.digest}
    text = json.dumps({**fields, "check": canonical_json.digest(fields)}, sort_keys=True)
    atomic_write.write(path, text.encode("ascii") + b"\n", mode=0o600)


def read(path: str) -> Anchor | None:
    """Return None if there is no anchor. A damaged anchor only proves that a database existed."""
    try:
        with open(path, "rb") as stream:
            fields: dict[str, Any] = canonical_json.decode(stream.read())
        if set(fields) != _FIRST and fields.pop("check") != canonical_json.digest(fields):
            return Anchor()
        return Anchor(**fields)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return Anchor()


def describe(connection: sqlite3.Connection) -> Anchor:
    """Return what to record about a database, from one consistent view of it."""
    connection.execute("BEGIN")
    try:
        return Anchor(*segments.head(connection), *_image(connection))
    finally:
        connection.execute("ROLLBACK")


def altered(connection: sqlite3.Connection, anchor: Anchor) -> bool | None:
    """Return whether bytes changed although SQLite did not write since; None if unknown."""
    if not anchor.digest:
        return None
    counter, digest = _image(connection)
    return digest != anchor.digest if digest and counter == anchor.counter else None


def size(connection: sqlite3.Connection) -> int:
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return pages * page


def _image(connection: sqlite3.Connection) -> tuple[int, str]:
    """Return (change counter, digest) of the file, read by SQLite.

    Closing a file of our own would drop SQLite's locks.
    """
    import hashlib

    if size(connection) > LIMIT:
        return 0, ""
    data = connection.serialize()
    return int.from_bytes(data[24:28], "big"), hashlib.sha256(data).hexdigest()
