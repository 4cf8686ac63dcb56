"""Events as database rows and as lines of text, and whether each fits its place in the chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import Event, NewEvent

COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
SEQ, RUN, KIND, PAYLOAD, FENCE, AT, PREVIOUS, HASH = 0, 2, 5, 6, 8, 9, 10, 11

Row = tuple[Any, ...]

Placed = tuple[Row, str | None]
"""A row and the working tree it was written from."""

Line = tuple[bytes, Row]
"""An event as a line of text, and its row."""

ROW = f"SELECT {COLUMNS} FROM events WHERE seq = ?"  # noqa: S608
_NAMES = COLUMNS.split(", ")
PLACE = {name: place for place, name in enumerate(_NAMES)}


def fault(row: Row, seq: int, previous: str) -> str | None:
    """Return why a row does not fit at this place of the chain, or None."""
    if row[SEQ] != seq:
        return f"event {seq} is missing"
    if row[PREVIOUS] != previous:
        return f"event {seq} is not chained to the event before it"
    return own_fault(row)


def own_fault(row: Row) -> str | None:
    """Return why a row is not what was written; None if its own hash matches."""
    try:
        own = hash_of(row)
    except (AttributeError, TypeError, ValueError):
        return f"event {row[SEQ]} is not readable"
    return None if own == row[HASH] else f"event {row[SEQ]} was changed after it was written"


def hash_of(row: Row) -> str:
    """Return the SHA-256 over every field of an event but its hash; its payload is canonical JSON text."""
    fields = canonical_json.flat([*row[:PAYLOAD], *row[PAYLOAD + 1 : HASH]])
    return hashlib.sha256(fields.encode("ascii") + b"\n" + row[PAYLOAD].encode("ascii")).hexdigest()


def chain(
    events: Iterable[tuple[NewEvent, str]], seq: int, previous: str, *, operation: str, fence: int, at: str
) -> list[Row]:
    """Return the rows of new events, given with the text of their payloads, that follow event `seq`."""
    rows = []
    for new, payload in events:
        seq += 1
        row = (seq, operation, new.run, new.task, new.attempt, new.kind, payload, new.version, fence, at, previous)
        previous = hash_of(row)
        rows.append((*row, previous))
    return rows


def line(row: Row, worktree: str | None) -> bytes:
    """Return canonical JSON with a line end. `worktree` is where the event was written; the hash does not cover it."""
    seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own = row
    before = {"at": at, "attempt": attempt, "fence": fence, "hash": own, "kind": kind, "operation": operation}
    after = {"previous": previous, "run": run, "seq": seq, "task": task, "version": version, "worktree": worktree}
    text = f'{canonical_json.flat(before)[:-1]},"payload":{payload},{canonical_json.flat(after)[1:]}\n'
    return text.encode()


def events(rows: Sequence[Row]) -> Iterator[Event]:
    """Yield the events of rows, with their payloads as values."""
    # One call per page: starting the decoder costs as much as a small payload.
    payloads = json.loads("[" + ",".join([row[PAYLOAD] for row in rows]) + "]")
    for row, payload in zip(rows, payloads, strict=True):
        seq, operation, run, task, attempt, kind, _, version, fence, at, previous, own = row
        yield Event(seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own)


def row_of(text: bytes) -> tuple[Row, str | None] | None:
    """Return (row, working tree) of a line; None if it is damaged."""
    try:
        fields = canonical_json.decode(text)
        fields["payload"] = canonical_json.encode(fields["payload"]).decode("ascii")
        row = tuple(fields[name] for name in _NAMES)
        worktree = fields["worktree"]
    except (ValueError, KeyError, TypeError):
        return None
    if own_fault(row) is not None or not isinstance(worktree, str | None):
        return None
    return row, worktree
