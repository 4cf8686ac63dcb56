"""Imports the files of an old iDumb in `.idumb/` into the event log, once; the originals are backed up.

Imported history never counts as proven, because this log did not record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.contract import legacy_claims
from idumb.app.core.services import Services
from idumb.app.engine import state_file
from idumb.app.session import operation
from idumb.domain.runs import legacy
from idumb.domain.runs.legacy import OldFile
from idumb.domain.runs.run import RunState


def pending(services: Services) -> tuple[tuple[OldFile, bytes], ...]:
    """Files whose history is not in the event log, with their bytes."""
    imported = {
        (f["path"], f["digest"])
        for event in services.log.events(kind=legacy_claims.IMPORTED)
        for f in event.payload["files"]
    }
    read = (state_file.of_path(services, path) for path in services.reports.files(state_file.FOLDER))
    files = (file for file in read if file is not None)
    return tuple(
        (old, data) for old, data in files if old.what == legacy.STATE or (old.path, old.digest) not in imported
    )


def import_files(services: Services) -> Mapping[str, Any] | None:
    """Import pending files; return the report, or None if there are none. Backups are written before the event."""
    if not pending(services):
        return None
    with operation.owned(services, "init") as owned:
        files = pending(services)
        return state_file.write(services, owned.journal(RunState()), files) if files else None
