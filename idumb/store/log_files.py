"""Files beside the database: backups that a person asks for, archived runs, and transcripts."""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
from collections.abc import Sequence
from typing import Any

from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs.event import KEPT_OF_ARCHIVED, ChainCheck
from idumb.store import archive, backups, connection, event_chain, log_errors
from idumb.system.files import atomic_write, private_folders

_EVENTS = f"SELECT {event_chain.COLUMNS} FROM events WHERE run = ? ORDER BY seq"  # noqa: S608
_DELETE = "DELETE FROM events WHERE run = ? AND kind NOT IN (?, ?, ?)"
_STARTS = "SELECT id, phase, worktree, started_seq FROM runs ORDER BY position"


class SqliteLogFiles:
    """Files of the event log outside its database, and the list of its runs."""

    def __init__(self, database: connection.Database) -> None:
        self._database = database

    def back_up(self, path: str) -> tuple[int, str]:
        """Write the database to a new file, forced to disk, and check it. Return number and hash of its last event.

        Refusal `backup.exists` if the name is taken.
        """
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise Refusal("backup.no-folder", f"There is no folder {folder}.", hint=f"mkdir -p {shlex.quote(folder)}")
        part = f"{path}.{os.getpid()}.part"
        with log_errors.translated(path):
            try:
                self._database.write(lambda _: None)  # a log without any event has a backup too
                self._database.read(lambda db: backups.copy(db, part), None)
                chain = backups.check(part, self._database.folder)
                if chain.broken_at is not None:
                    raise log_errors.corrupt(self._database.path, chain.why)
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
                os.rename(part, path)
            except FileExistsError:
                raise Refusal("backup.exists", f"{path} already exists.", hint="choose another name") from None
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
            atomic_write.sync_folder(folder)
        return chain.count, chain.head

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Recompute every hash, and return whether the log of this repository has the backup's newest event."""
        if not os.path.isfile(path):
            raise Refusal("backup.missing", f"There is no file {path}.", hint="idumb backup FILE writes one")
        chain = backups.check(path, self._database.folder)
        if not chain.head:
            hint = "the file is damaged or is not a backup; idumb backup FILE writes another one"
            raise StoreError("store.corrupt", f"{path} cannot be read as a backup: {chain.why}", hint=hint)
        own = self._database.rows(event_chain.ROW, (chain.count,))
        return chain, bool(own) and own[0][event_chain.HASH] == chain.head

    def starts(self) -> list[tuple[str, str, str, int]]:
        """Return (run, phase, working tree, first event) of every run of the repository, oldest first."""
        none: list[tuple[str, str, str, int]] = []
        return self._database.read(lambda db: db.execute(_STARTS).fetchall(), none)

    def archived(self) -> list[dict[str, Any]]:
        """Return run, events, first, last, head and file of each archived run."""
        none: list[dict[str, Any]] = []
        return self._database.read(archive.records, none)

    def pack(self, run: str) -> dict[str, Any]:
        """Write the file of a finished run. Return the payload of its last event `log.archived`, before `remove`."""
        with log_errors.translated(self._database.path):
            record = archive.write(self._database.folder, self._database.rows(_EVENTS, (run,)))
        if record is None:
            raise log_errors.corrupt(self._database.path, f"the events of run {run} are not as they were written")
        return record

    def remove(self, runs: Sequence[str]) -> None:
        """Remove the events of archived runs from the database. If it is killed, a later call continues."""

        def delete(db: sqlite3.Connection) -> None:
            db.executemany(_DELETE, [(run, *KEPT_OF_ARCHIVED) for run in runs])

        if runs:
            self._database.write(delete)
            with contextlib.suppress(StoreError):
                self._database.read(lambda db: db.execute("VACUUM"), None)

    def forget_transcripts(self, run: str, worktree: str) -> None:
        """Remove what the agents of a run did. A missing folder is not an error."""
        place = os.path.join(self._database.folder, "worktrees", worktree, "transcripts", run)
        private_folders.try_to_remove(place)
