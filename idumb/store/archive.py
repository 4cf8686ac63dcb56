"""Archived runs: `archive/RUN.jsonl.gz`, one line for each event of a finished run.

The events leave the database only after the file was forced to disk and read back, and after `log.archived`, the last
event of the run, recorded its head. A trigger of the database requires that event. Kinds of
`KEPT_OF_ARCHIVED` stay.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.store import event_chain
from idumb.store.event_chain import HASH, PREVIOUS, RUN, SEQ, Row
from idumb.system.files import atomic_write, private_folders

FOLDER = "archive"
KIND = "log.archived"
_RECORDS = "SELECT payload FROM events WHERE kind = ? ORDER BY seq"


def records(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the payload of every `log.archived`: run, events, first, last, head and file."""
    return [json.loads(payload) for (payload,) in connection.execute(_RECORDS, (KIND,))]


def rows(folder: str, record: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the events of an archived run; they end where its file is damaged. `folder` is `<common dir>/idumb`."""
    import gzip

    try:
        with gzip.open(os.path.join(folder, FOLDER, record["file"]), "rb") as stream:
            for text in stream:
                yield event_chain.row_of(text)
    except (OSError, EOFError, zlib.error, ValueError):
        return


def write(folder: str, events: Sequence[Row]) -> dict[str, Any] | None:
    """Write the file of a run, forced to disk, and read it back.

    Return the payload of `log.archived`; None if the events are no chain, or the file has others. Raises OSError.
    """
    import gzip
    import io

    first, last = events[0], events[-1]
    record = {
        "run": first[RUN],
        "events": len(events),
        "first": first[SEQ],
        "last": last[SEQ],
        "head": last[HASH],
        "file": f"{first[RUN]}.jsonl.gz",
    }
    packed = io.BytesIO()
    # No time and no name inside: the same events produce the same bytes.
    with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream:
        stream.writelines(map(event_chain.line, events))
    place = os.path.join(folder, FOLDER)
    private_folders.make(place)
    atomic_write.write(os.path.join(place, record["file"]), packed.getvalue(), mode=0o600)
    chained = all(row[PREVIOUS] == before[HASH] for before, row in itertools.pairwise(events))
    whole = chained and not any(map(event_chain.own_fault, events))
    return record if whole and list(rows(folder, record)) == list(events) else None
