"""Problems of the event log in words, with the next step; translations of SQLite's and the system's errors."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator

from idumb.domain.errors import StoreError
from idumb.system.files import file_systems

FIX = "idumb doctor --fix"
_LATER = "retry when it has ended"
_LOOK = "check the owner, mode and free space of that folder, then run the command again"
_ANSWERS = {
    sqlite3.SQLITE_BUSY: ("store.busy", "another process holds the event log", _LATER),
    sqlite3.SQLITE_LOCKED: ("store.busy", "another process holds the event log", _LATER),
    sqlite3.SQLITE_FULL: (
        "store.full",
        "no space is left for the event log",
        "free disk space, then run: idumb resume",
    ),
    sqlite3.SQLITE_READONLY: ("store.read-only", "the event log cannot be written", "check owner and mode of the file"),
    sqlite3.SQLITE_CORRUPT: ("store.corrupt", "the event log is damaged", FIX),
    sqlite3.SQLITE_NOTADB: ("store.corrupt", "the event log is not an SQLite database", FIX),
    sqlite3.SQLITE_CONSTRAINT: ("store.refused", "the event log refused the write", None),
    sqlite3.SQLITE_IOERR: ("store.io", "the disk failed under the event log", "check the disk, then run: idumb resume"),
    sqlite3.SQLITE_CANTOPEN: ("store.file", "the event log cannot be opened", "check owner and mode of its folder"),
}


RAW = (sqlite3.Error, UnicodeDecodeError, OSError)
"""Errors of SQLite and the system, which `translate` puts in words."""


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise StoreError, with the next step, in place of errors of SQLite and the system."""
    try:
        yield
    except RAW as error:
        raise translate(path, error) from error


def translate(path: str, error: Exception) -> StoreError:
    if isinstance(error, UnicodeDecodeError):
        return corrupt(path, "its text is unreadable")  # SQLite's own messages quote the damaged text
    if isinstance(error, OSError):
        space_note = file_systems.described(path) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        message = f"the event log cannot be used: {error.strerror or error}: {error.filename or path}{space_note}"
        return StoreError("store.file", message, hint=_LOOK, details={"path": path})
    code, message, hint = _ANSWERS.get(_code(error), ("store.failed", "the event log failed", FIX))
    space_note = file_systems.described(path) if code == "store.full" else ""
    if code == "store.file" and (space_note := file_systems.nearly_full(path)):
        code, _, hint = _ANSWERS[sqlite3.SQLITE_FULL]
    return StoreError(code, f"{message}: {path}: {error}{space_note}", hint=hint, details={"path": path})


def is_busy(error: Exception) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: Exception) -> int:
    """Return SQLite's primary result code, the low byte of an extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def corrupt(path: str, why: str) -> StoreError:
    return StoreError("store.corrupt", f"the event log is damaged: {path}: {why}", hint=FIX, details={"path": path})


def missing(path: str, witness: str) -> StoreError:
    return StoreError(
        "store.missing",
        f"the event log is gone or empty, though {witness} there was one: {path}",
        hint=FIX,
        details={"path": path},
    )


def older(path: str, seq: int) -> StoreError:
    return StoreError(
        "store.older",
        f"the event log lacks event {seq}, which the state directory knows; this is an older copy of it: {path}",
        hint=FIX,
        details={"path": path, "seq": seq},
    )


def diverged(path: str, seq: int) -> StoreError:
    return StoreError(
        "store.diverged",
        f"the event log has another event {seq} than the state directory knows, so it is another log: {path}",
        hint="idumb doctor shows the newest backup; put the log that you trust in place",
        details={"path": path, "seq": seq},
    )
