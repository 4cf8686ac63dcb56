"""Events as database rows and as lines of text, and whether each fits its place in its chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.runs.event import GENESIS, ChainCheck, Event, NewEvent

COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
SEQ, RUN, PAYLOAD, PREVIOUS, HASH = 0, 2, 6, 10, 11
ROW = f"SELECT {COLUMNS} FROM events WHERE seq = ?"  # noqa: S608
RUN_COLUMNS = "position, id, phase, worktree, number, started_seq, previous, hash"

Row = tuple[Any, ...]

Heads = dict[str | None, str]
"""The hash that the next event of each run is chained to; None are the events of no run."""

_NAMES = COLUMNS.split(", ")


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


def run_row(position: int, run: Sequence[Any], previous: str) -> Row:
    """Return the row of a run; `run` is (id, phase, working tree, number, first event)."""
    fields = (position, *run, previous)
    return (*fields, canonical_json.digest(list(fields)))


def chain(
    events: Iterable[tuple[NewEvent, str]], seq: int, heads: Heads, *, operation: str, fence: int, at: str
) -> list[Row]:
    """Return the rows of new events, given with the text of their payloads, that follow event `seq`."""
    rows = []
    heads = dict(heads)
    for new, payload in events:
        seq += 1
        previous = heads.get(new.run, GENESIS)
        row = (seq, operation, new.run, new.task, new.attempt, new.kind, payload, new.version, fence, at, previous)
        heads[new.run] = hash_of(row)
        rows.append((*row, heads[new.run]))
    return rows


def follow(rows: Iterable[Row], heads: Heads) -> ChainCheck:
    """Follow every chain through rows that are sorted by number. A row may come twice, if both are the same."""
    count, head = 0, GENESIS
    for row in rows:
        if row[SEQ] == count and row[HASH] == head:
            continue
        if row[SEQ] != count + 1:
            return ChainCheck(count, head, broken_at=count + 1, why=f"event {count + 1} is missing")
        chained = row[PREVIOUS] == heads.get(row[RUN], GENESIS)
        why = own_fault(row) if chained else f"event {row[SEQ]} is not chained to the event before it"
        if why is not None:
            return ChainCheck(count, head, broken_at=count + 1, why=why)
        count, head = row[SEQ], row[HASH]
        heads[row[RUN]] = head
    return ChainCheck(count, head)


def run_heads(rows: Iterable[Row]) -> Heads | None:
    """Return what the first event of each run is chained to, from the rows of all runs; None if one was changed."""
    previous, heads = GENESIS, Heads()
    for position, row in enumerate(rows, 1):
        if row != run_row(position, row[1:-2], previous):
            return None
        previous = heads[row[1]] = row[-1]
    return heads


def line(row: Row) -> bytes:
    """Return an event as canonical JSON with a line end."""
    fields = dict(zip(_NAMES, row, strict=True))
    return canonical_json.encode({**fields, "payload": json.loads(row[PAYLOAD])}) + b"\n"


def row_of(text: bytes) -> Row:
    """Return the row of a line. ValueError if it is damaged."""
    try:
        fields = canonical_json.decode(text)
        fields["payload"] = canonical_json.encode(fields["payload"]).decode("ascii")
        return tuple(fields[name] for name in _NAMES)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def events(rows: Sequence[Row]) -> Iterator[Event]:
    """Yield the events of rows, with their payloads as values."""
    # One call per page: starting the decoder costs as much as a small payload.
    payloads = json.loads("[" + ",".join([row[PAYLOAD] for row in rows]) + "]")
    for row, payload in zip(rows, payloads, strict=True):
        seq, operation, run, task, attempt, kind, _, version, fence, at, previous, own = row
        yield Event(seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, own)
