"""`idumb backup`: write all events to a file, and verify such a file."""

from __future__ import annotations

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.errors import EXIT_FAILED


def write(services: Services, path: str) -> Result:
    """Write a new file; an existing one is never replaced."""
    count, head = services.log_files.back_up(path)
    return Result({"path": path, "events": count, "head": head, "verified": True, "of_this_log": True})


def verify(services: Services, path: str) -> Result:
    """Check every hash. `of_this_log` tells whether this repository's log starts with the same events."""
    chain, same_log = services.log_files.check_backup(path)
    whole = chain.broken_at is None
    data = {"path": path, "events": chain.count, "head": chain.head, "verified": whole, "of_this_log": same_log}
    if whole:
        return Result(data)
    words = f"The backup is damaged at event {chain.broken_at}: {chain.why}"
    return Result(data, EXIT_FAILED, (), ("backup.broken", words, "idumb backup FILE writes a new one"))
