"""One event as a database row and as a line of text, and whether it fits its place in the chain."""

from __future__ import annotations

import json
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import chain_hash

COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
SEQ, RUN, KIND, PAYLOAD, FENCE, AT, PREVIOUS, HASH = 0, 2, 5, 6, 8, 9, 10, 11

Row = tuple[Any, ...]
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
    return None if own == row[HASH] else f"event {row[SEQ]} is not what it was when it was written"


def hash_of(row: Row) -> str:
    return chain_hash(
        seq=row[0], operation=row[1], run=row[2], task=row[3], attempt=row[4], kind=row[5], payload=row[6],
        version=row[7], fence=row[8], at=row[9], previous=row[10],
    )  # fmt: skip


def line(row: Row, worktree: str | None) -> bytes:
    """Return canonical JSON with a line end. `worktree` is where the event was written; the hash does not cover it."""
    fields = dict(zip(_NAMES, row, strict=True))
    fields["payload"] = json.loads(row[PAYLOAD])
    return canonical_json.encode({**fields, "worktree": worktree}) + b"\n"


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
