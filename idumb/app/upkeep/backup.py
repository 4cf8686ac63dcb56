"""Backups of the event log: one file with every event, and the proof that such a file is whole."""

from __future__ import annotations

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.errors import EXIT_FAILED


def write(services: Services, path: str) -> Result:
    """A new file; one that exists is never replaced."""
    count, head = services.log_files.back_up(path)
    return Result({"path": path, "events": count, "head": head, "verified": True, "of_this_log": True})


def verify(services: Services, path: str) -> Result:
    """Every hash again. `of_this_log` tells whether the log of this repository began with the same events."""
    found, ours = services.log_files.check_backup(path)
    whole = found.broken_at is None
    data = {"path": path, "events": found.count, "head": found.head, "verified": whole, "of_this_log": ours}
    if whole:
        return Result(data)
    words = f"The backup is not as it was written: event {found.broken_at}: {found.why}"
    return Result(data, EXIT_FAILED, (), ("backup.broken", words, "idumb backup FILE writes another one"))
