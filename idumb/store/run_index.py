"""The index of runs: written in the transaction of the event it follows, so it is never ahead nor behind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from idumb.domain.runs import run
from idumb.domain.runs.event import NewEvent
from idumb.store import connection, event_chain
from idumb.store.event_chain import Row
from idumb.store.event_pages import rows

_STATES: Mapping[str, str] = {
    "run.resumed": run.ACTIVE,
    "run.halted": run.HALTED,
    "run.interrupted": run.INTERRUPTED,
    "run.paused": run.PAUSED,
    "run.completed": run.COMPLETED,
    "run.failed": run.FAILED,
    "rollback.completed": run.HALTED,
}


class SqliteRunIndex:
    """Implements the port `RunIndex` on the database of a log."""

    def __init__(self, database: connection.Database, worktree: str) -> None:
        self._database = database
        self._worktree = worktree

    def latest(self, phase: str) -> str | None:
        query = "SELECT id FROM runs WHERE phase = ? AND worktree = ? ORDER BY started_seq DESC LIMIT 1"
        found = rows(self._database, query, [phase, self._worktree])
        return found[0][0] if found else None

    def last_number(self, phase: str) -> int:
        """Each work tree counts for itself: what two of them start at once must not get the same number and id."""
        query = "SELECT MAX(number) FROM runs WHERE phase = ? AND worktree = ?"
        found = rows(self._database, query, [phase, self._worktree])
        return (found[0][0] or 0) if found else 0

    def phases(self) -> tuple[str, ...]:
        """Phases that were run in this work tree, in the order of their first run."""
        query = "SELECT phase FROM runs WHERE worktree = ? GROUP BY phase ORDER BY MIN(started_seq)"
        return tuple(row[0] for row in rows(self._database, query, [self._worktree]))


def follow(db: sqlite3.Connection, new: NewEvent, seq: int, worktree: str) -> None:
    """Bring the index up to an event that is being appended as number `seq`."""
    if new.kind == "run.started":
        db.execute(
            "INSERT INTO runs (id, phase, worktree, number, started_seq, state) VALUES (?, ?, ?, ?, ?, ?)",
            (new.run, new.payload["phase"], worktree, new.payload["number"], seq, run.ACTIVE),
        )
    elif new.kind in _STATES:
        db.execute("UPDATE runs SET state = ? WHERE id = ?", (_STATES[new.kind], new.run))


def follow_row(db: sqlite3.Connection, row: Row, worktree: str) -> None:
    """`follow` for an event that was written before."""
    payload = json.loads(row[event_chain.PAYLOAD]) if row[event_chain.KIND] == "run.started" else {}
    follow(db, NewEvent(row[event_chain.KIND], payload, run=row[event_chain.RUN]), row[event_chain.SEQ], worktree)
