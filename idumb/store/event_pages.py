"""Read events a page at a time: a paused reader must hold no lock, because that would block writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from idumb.store import connection, event_chain, log_errors, segments
from idumb.store.event_chain import COLUMNS, Row

PAGE = 500
_LAST = 2**63 - 1
_WIDE = frozenset({"kind", "operation"})


@dataclass(frozen=True, slots=True)
class Where:
    """`equal` maps columns to values; `since` and `until` are inclusive times, `after` an exclusive number."""

    equal: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None
    after: int = 0


def everywhere(
    database: connection.Database, where: Where, *, limit: int | None = None, newest_first: bool = False
) -> Iterator[list[Row]]:
    """Yield `pages`, continuing in the segments as if the rows had never left the table."""
    left = _LAST if limit is None else limit
    begun = database.read(segments.archived, 0)
    edge = _LAST
    parts = [_archived(database, where, newest_first=newest_first), None]
    for part in reversed(parts) if newest_first else parts:
        for page in pages(database, where, limit=left, newest_first=newest_first) if part is None else part:
            # Rows that were archived meanwhile come again if the newest are read first.
            kept = [row for row in page if row[event_chain.SEQ] < edge] if newest_first else page
            yield kept[:left]
            edge = kept[-1][event_chain.SEQ] if kept else edge
            left -= len(kept)
            if left <= 0:
                return
    if not newest_first and database.read(segments.archived, 0) != begun:
        raise log_errors.moved(database.path)


def _archived(database: connection.Database, where: Where, *, newest_first: bool) -> Iterator[list[Row]]:
    """Yield matching rows of each segment that may have any; a file is opened on demand."""
    listed: tuple[segments.Segment, ...] = database.read(segments.listed, ())
    if not listed or where.after >= listed[-1].last or _began_later(database, where, listed[-1].last):
        return
    for segment in reversed(listed) if newest_first else listed:
        if segment.last > where.after and where.equal.get("kind", "") in ("", *segment.kinds.split()):
            page = [row for row in segments.rows(database.folder, segment) if _fits(row, where)]
            if page:
                yield page[::-1] if newest_first else page


def _began_later(database: connection.Database, where: Where, archived: int) -> bool:
    """Return whether the requested run started after everything that was archived."""
    run = where.equal.get("run")
    rows = database.rows("SELECT started_seq FROM runs WHERE id = ?", (run,)) if run is not None else []
    return bool(rows) and rows[0][0] > archived


def _fits(row: Row, where: Where) -> bool:
    at = row[event_chain.AT]
    return (
        row[event_chain.SEQ] > where.after
        and (where.since is None or at >= where.since)
        and (where.until is None or at <= where.until)
        and all(row[event_chain.PLACE[column]] == value for column, value in where.equal.items())
    )


def pages(
    database: connection.Database, where: Where, *, limit: int | None = None, newest_first: bool = False
) -> Iterator[list[Row]]:
    """Yield rows of `events` in the order of COLUMNS, never an empty page."""
    condition, arguments = _condition(where)
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY seq {order} LIMIT ?"  # noqa: S608
    lower, upper, left = _first(database, where), _LAST, _LAST if limit is None else limit
    while left > 0:
        size = min(PAGE, left)
        page = database.rows(query, (*arguments, lower, upper, size))
        if page:
            yield page
        if len(page) < size:
            return
        left -= size
        lower, upper = (lower, page[-1][0]) if newest_first else (page[-1][0], upper)


def _condition(where: Where) -> tuple[str, list[str]]:
    # A run is a short part of the log, a kind is not. The plus keeps SQLite from choosing the other indexes.
    weak = "+" if "run" in where.equal else ""
    parts = [f"{weak if column in _WIDE else ''}{column} = ?" for column in where.equal]
    arguments = list(where.equal.values())
    for bound, comparison in ((where.since, ">="), (where.until, "<=")):
        if bound is not None:
            # The plus keeps SQLite from sorting by the time index for every page.
            parts.append(f"+at {comparison} ?")
            arguments.append(bound)
    return " AND ".join([*parts, "seq > ?", "seq < ?"]), arguments


def _first(database: connection.Database, where: Where) -> int:
    """Return the number after which to start. The clock may have gone back, so times alone are not enough."""
    if where.since is None:
        return where.after
    # Without the plus, SQLite searches the minimum row by row from the first event, past the time index.
    rows = database.rows("SELECT MIN(+seq) FROM events WHERE at >= ?", (where.since,))
    earliest = rows[0][0] if rows else None
    return where.after if earliest is None else max(where.after, earliest - 1)
