"""From any released schema to the present one, a version at a time, inside the caller's transaction.

To change the schema: add its statements to `schema.py`, a row here, and a golden database of the new version
(`tests/adapters/store/make_golden.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from idumb.store import schema

STEPS: Mapping[int, Sequence[str]] = {1: schema.VERSION_1, 2: schema.VERSION_2}
"""Version to the statements that lead to it from the one before."""

CURRENT = max(STEPS)


def version(connection: sqlite3.Connection) -> int:
    """0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def stand_in(connection: sqlite3.Connection) -> None:
    """Let a database of an older schema be read as it is: what it lacks is there for this connection, and empty.

    Only a command that writes owns the work tree and may migrate; and on read-only media nobody can.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    for statement in schema.TEMPORARY:
        connection.execute(statement)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema to CURRENT; does nothing where it is there already."""
    for target in range(version(connection) + 1, CURRENT + 1):
        for statement in STEPS[target]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {target:d}")
