"""Problems of the event log in words, with the next step; translations of SQLite's and the system's errors."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from typing import NoReturn

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


class translated(contextlib.AbstractContextManager[None]):  # noqa: N801 - used like a function
    """Translate errors of SQLite and the system into StoreError, with the next step."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            _raise(self._path, error)
        if isinstance(error, UnicodeDecodeError):
            # SQLite's own messages quote the damaged text.
            raise corrupt(self._path, "its text is unreadable") from error
        if isinstance(error, OSError):
            details = {"path": self._path}
            raise StoreError("store.file", _words(self._path, error), hint=_LOOK, details=details) from error


def _words(path: str, error: OSError) -> str:
    left = file_systems.described(path) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"the event log cannot be used: {error.strerror or error}: {error.filename or path}{left}"


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code, the low byte of an extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _raise(path: str, error: sqlite3.Error) -> NoReturn:
    code, message, hint = _ANSWERS.get(_code(error), ("store.failed", "the event log failed", FIX))
    left = file_systems.described(path) if code == "store.full" else ""
    if code == "store.file" and (left := file_systems.nearly_full(path)):
        code, _, hint = _ANSWERS[sqlite3.SQLITE_FULL]
    raise StoreError(code, f"{message}: {path}: {error}{left}", hint=hint, details={"path": path}) from error


def corrupt(path: str, why: str) -> StoreError:
    return StoreError("store.corrupt", f"the event log is damaged: {path}: {why}", hint=FIX, details={"path": path})


def newer(path: str, known: int, ours: int) -> StoreError:
    return StoreError(
        "store.newer",
        f"the event log was written by a newer idumb (schema {known}, this one knows {ours}): {path}",
        hint="install a newer idumb",
        details={"path": path, "schema": known, "known": ours},
    )


def missing(path: str, witness: str) -> StoreError:
    return StoreError(
        "store.missing",
        f"the event log is gone or empty, though {witness} there was one: {path}",
        hint=FIX,
        details={"path": path},
    )


def older(path: str, seq: int, witness: str) -> StoreError:
    return StoreError(
        "store.older",
        f"the event log lacks event {seq}, which {witness} knows; this is an older copy of it: {path}",
        hint=FIX,
        details={"path": path, "seq": seq},
    )


def diverged(path: str, seq: int, witness: str) -> StoreError:
    return StoreError(
        "store.diverged",
        f"the event log and {witness} tell different histories up to event {seq}; both were kept: {path}",
        hint="idumb doctor shows both; put the log that you trust in place",
        details={"path": path, "seq": seq},
    )


def unsafe(why: str) -> StoreError:
    return StoreError(
        "store.unsafe",
        f"the copy of the event log in the state directory cannot be trusted: {why}",
        hint="make the folder yours alone (owner you, mode 0700)",
    )


def network(path: str, kind: str) -> StoreError:
    return StoreError(
        "store.network",
        f"the event log would be on a network file system ({kind}), where locks and forced writes are not reliable:"
        f" {path}",
        hint="Keep the repository on a local disk, or set git.network in .idumb/config.yaml",
        details={"path": path, "kind": kind},
    )


def moved(path: str) -> StoreError:
    return StoreError(
        "store.busy", f"events were moved to the archive while they were read: {path}", hint="run the command again"
    )
