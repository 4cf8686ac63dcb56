"""Takes over what an old iDumb left below `.idumb/`: once, with a report, the originals kept byte for byte.

Nothing of it counts as proven: it is history that was told and not witnessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app import session
from idumb.app.services import Services
from idumb.domain import legacy
from idumb.domain.legacy import OldFile
from idumb.domain.run import RunState

FOLDER = ".idumb"
ATTIC = "legacy"
EVENT = "legacy.imported"


def pending(services: Services) -> tuple[tuple[OldFile, bytes], ...]:
    """Files of an old iDumb that the log does not know yet, with their bytes."""
    known = {(f["path"], f["digest"]) for event in services.log.events(kind=EVENT) for f in event.payload["files"]}
    found = []
    for path in services.reports.files(FOLDER):
        text = services.reports.read(path)
        data = (text or "").encode("utf-8", "surrogateescape")
        old = None if text is None else services.plans.old_state(path, data)
        if old is not None and (old.path, old.digest) not in known:
            found.append((old, data))
    return tuple(found)


def take_over(services: Services) -> Mapping[str, Any] | None:
    """The report, None where there is nothing to take over. Files are kept before the event says so."""
    if not pending(services):
        return None
    with session.owned(services, "init") as owned:
        found = pending(services)
        if not found:
            return None
        files = [_kept(services, old, data) for old, data in found]
        report = {**legacy.told(tuple(old for old, _ in found)), "files": files}
        journal = owned.journal(RunState())
        journal.write(journal.event(EVENT, **report))
    return report


def _kept(services: Services, old: OldFile, data: bytes) -> dict[str, Any]:
    kept = services.attic.keep(ATTIC, old.path.removeprefix(f"{FOLDER}/"), data)
    return {"path": old.path, "what": old.what, "digest": old.digest, "size": len(data), "kept": kept}


def by_phase(services: Services) -> dict[str, dict[str, Any]]:
    """What was taken over of each phase, by its number; later reports stand for earlier ones."""
    events = services.log.events(kind=EVENT)
    return {str(told["phase"]): dict(told) for event in events for told in event.payload["phases"]}
