"""Reading events a page at a time: a reader that pauses must hold no lock, for that would keep writers waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.store import connection

PAGE = 500
COLUMNS = "seq, operation, run, task, attempt, kind, payload, version, fence, at, previous, hash"
_LAST = 2**63 - 1
_WIDE = frozenset({"kind", "operation"})

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """`equal` maps columns to values; `since` and `until` are inclusive times, `after` an exclusive number."""

    equal: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None
    after: int = 0


def pages(
    database: connection.Database, where: Where, *, limit: int | None = None, newest_first: bool = False
) -> Iterator[list[Row]]:
    """Rows of `events` in the order of COLUMNS, never an empty page."""
    condition, arguments = _condition(where)
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY seq {order} LIMIT ?"  # noqa: S608
    lower, upper, left = _first(database, where), _LAST, _LAST if limit is None else limit
    while left > 0:
        size = min(PAGE, left)
        page = rows(database, query, [*arguments, lower, upper, size])
        if page:
            yield page
        if len(page) < size:
            return
        left -= size
        lower, upper = (lower, page[-1][0]) if newest_first else (page[-1][0], upper)


def rows(database: connection.Database, query: str, arguments: Sequence[Any]) -> list[Row]:
    nothing: list[Row] = []
    return database.read(lambda db: db.execute(query, arguments).fetchall(), nothing)


def _condition(where: Where) -> tuple[str, list[str]]:
    # A run is a short part of the log, a kind is not. The plus takes the other indexes out of SQLite's choice.
    weak = "+" if "run" in where.equal else ""
    parts = [f"{weak if column in _WIDE else ''}{column} = ?" for column in where.equal]
    arguments = list(where.equal.values())
    for bound, comparison in ((where.since, ">="), (where.until, "<=")):
        if bound is not None:
            # The plus keeps SQLite from sorting by the index of times anew for every page.
            parts.append(f"+at {comparison} ?")
            arguments.append(bound)
    return " AND ".join([*parts, "seq > ?", "seq < ?"]), arguments


def _first(database: connection.Database, where: Where) -> int:
    """The number after which to begin. The clock may have gone back, so times alone do not say it."""
    if where.since is None:
        return where.after
    found = rows(database, "SELECT MIN(seq) FROM events WHERE at >= ?", [where.since])
    earliest = found[0][0] if found else None
    return where.after if earliest is None else max(where.after, earliest - 1)
