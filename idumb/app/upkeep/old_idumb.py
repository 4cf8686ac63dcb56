"""Takes over what an old iDumb left below `.idumb/`: once, with a report, the originals kept byte for byte.

Nothing of it counts as proven: it is history that was told and not witnessed.
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
    """Files of an old iDumb that the log does not know yet, with their bytes."""
    known = {
        (f["path"], f["digest"])
        for event in services.log.events(kind=legacy_claims.EVENT)
        for f in event.payload["files"]
    }
    found = (state_file.of_path(services, path) for path in services.reports.files(state_file.FOLDER))
    new = (one for one in found if one is not None)
    return tuple((old, data) for old, data in new if old.what == legacy.STATE or (old.path, old.digest) not in known)


def take_over(services: Services) -> Mapping[str, Any] | None:
    """The report, None where there is nothing to take over. Files are kept before the event says so."""
    if not pending(services):
        return None
    with operation.owned(services, "init") as owned:
        found = pending(services)
        return state_file.write(services, owned.journal(RunState()), found) if found else None
