"""Whether a database that was just opened is the one that its witnesses know: anchor, copy and refs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from idumb.store import anchor, log_errors, segments
from idumb.store.anchored_copy import AnchoredCopy

ANCHOR = "anchor.json beside it"
COPY = "its copy in the state directory"
REFS = "refs/idumb in the repository"


class Witnesses:
    """What other files know about the database. `kept_refs` tells whether refs/idumb holds anything."""

    def __init__(self, path: str, anchor_path: str, copy: AnchoredCopy, kept_refs: Callable[[], bool]) -> None:
        self._path = path
        self._anchor_path = anchor_path
        self.copy = copy
        self._kept_refs = kept_refs
        self._trusted: bool | None = None

    def require_none(self) -> None:
        """Require that no witness knows of an earlier log, so that a new one may be created.

        StoreError `store.missing`.
        """
        if anchor.exists(self._anchor_path):
            raise log_errors.missing(self._path, f"{ANCHOR} says that")
        if self._kept_refs():
            raise log_errors.missing(self._path, f"{REFS} holds what it recorded, so")

    def require_sound(self, connection: sqlite3.Connection) -> None:
        """Require that every byte is as SQLite left it; if unknown, that tables and indexes match. StoreError."""
        known = anchor.read(self._anchor_path)
        altered = None if known is None else anchor.altered(connection, known)
        if altered:
            raise log_errors.corrupt(self._path, "bytes changed since idumb wrote them")
        if altered is None and anchor.size(connection) <= anchor.LIMIT:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise log_errors.corrupt(self._path, found)

    def require_newest(self, connection: sqlite3.Connection) -> None:
        """StoreError `store.older` or `store.diverged` if a witness knows a later or different history."""
        self._require_anchored(connection)
        if self.trusted():
            self._require_copied(connection)

    def newest(self) -> int:
        known = anchor.read(self._anchor_path)
        tail = self.copy.tail() if self.trusted() else None
        return max(0 if known is None else known.seq, 0 if tail is None else tail[0])

    def trusted(self) -> bool:
        """Return whether only the user can write the copy; any other copy is ignored."""
        if self._trusted is None:
            self._trusted = self.copy.problem() is None
        return self._trusted

    def _require_anchored(self, connection: sqlite3.Connection) -> None:
        known = anchor.read(self._anchor_path)
        if known is None or known.seq == 0:
            return
        found = segments.hash_at(connection, known.seq)
        if found is None and known.seq > segments.archived(connection):
            raise log_errors.older(self._path, known.seq, ANCHOR)
        if found is not None and found != known.hash:
            raise log_errors.diverged(self._path, known.seq, ANCHOR)

    def _require_copied(self, connection: sqlite3.Connection) -> None:
        tail = self.copy.tail()
        if tail is None:
            return
        seq, known = tail
        found = segments.hash_at(connection, seq)
        if found == known or (found is None and seq <= segments.archived(connection)):
            return
        if found is None:
            last, head = segments.head(connection)
            if last == 0 or self.copy.hash_at(last) == head:
                raise log_errors.older(self._path, seq, COPY)
        raise log_errors.diverged(self._path, seq, COPY)


def nothing_kept() -> bool:
    return False
