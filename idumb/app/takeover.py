"""Takes over what an old iDumb left below `.idumb/`: once, with a report, the originals kept byte for byte.

Nothing of it counts as proven: it is history that was told and not witnessed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from idumb.app import session
from idumb.app.journal import Journal
from idumb.app.services import Services
from idumb.domain import legacy
from idumb.domain.contract import Contract
from idumb.domain.legacy import OldFile
from idumb.domain.plan import STRICT
from idumb.domain.run import RunState

FOLDER = ".idumb"
ATTIC = "legacy"
EVENT = "legacy.imported"


def pending(services: Services) -> tuple[tuple[OldFile, bytes], ...]:
    """Files of an old iDumb that the log does not know yet, with their bytes."""
    known = {(f["path"], f["digest"]) for event in services.log.events(kind=EVENT) for f in event.payload["files"]}
    found = (of_path(services, path) for path in services.reports.files(FOLDER))
    new = (one for one in found if one is not None)
    return tuple((old, data) for old, data in new if old.what == legacy.STATE or (old.path, old.digest) not in known)


def of_path(services: Services, path: str) -> tuple[OldFile, bytes] | None:
    """What one file says, with its bytes; of `state.json` what the log does not say. None where that is nothing."""
    from idumb.app import state_file

    text = services.reports.read(path)
    data = (text or "").encode("utf-8", "surrogateescape")
    old = None if text is None else services.plans.old_state(path, data)
    if old is None or old.what != legacy.STATE:
        return None if old is None else (old, data)
    found = state_file.beyond(services, dict(old.found))
    if found is None:
        return None
    only = {**found.state, "anchors": list(found.anchors), "history": list(found.history)}
    return dataclasses.replace(old, found=only), data


def take_over(services: Services) -> Mapping[str, Any] | None:
    """The report, None where there is nothing to take over. Files are kept before the event says so."""
    if not pending(services):
        return None
    with session.owned(services, "init") as owned:
        found = pending(services)
        return write(services, owned.journal(RunState()), found) if found else None


def write(services: Services, journal: Journal, found: Sequence[tuple[OldFile, bytes]]) -> dict[str, Any]:
    files = [_kept(services, old, data) for old, data in found]
    report = {**legacy.told(tuple(old for old, _ in found)), "files": files, "worktree": services.worktree}
    journal.write(dataclasses.replace(journal.event(EVENT, **report), run=None))
    return report


def _kept(services: Services, old: OldFile, data: bytes) -> dict[str, Any]:
    kept = services.attic.keep(ATTIC, old.path.removeprefix(f"{FOLDER}/"), data)
    return {"path": old.path, "what": old.what, "digest": old.digest, "size": len(data), "kept": kept}


def claims(services: Services, contract: Contract, state: RunState) -> frozenset[str]:
    """Tasks of a guided phase that an old iDumb calls completed, and that no run of this work tree has built.

    A person's own tasks are none of them, nor are those that a person wants built.
    """
    told = [row for name, row in by_phase(services).items() if plain(name) == plain(contract.phase)]
    done = {task for row in told for task in row["completed"]}
    wanted = {
        id
        for id, task in contract.tasks.items()
        if id in done and not task.is_human and STRICT not in (contract.plan_of(id).mode, state.mode)
    }
    built = _built(services, contract.phase) if wanted else frozenset()
    return frozenset(id for id in wanted - built if not legacy.is_to_be_built(state, id))


def _built(services: Services, phase: str) -> frozenset[str]:
    here = {run for run, of, worktree, _ in services.log_files.starts() if (of, worktree) == (phase, services.worktree)}
    begun = services.log.events(kind="attempt.started")
    return frozenset(str(event.task) for event in begun if event.run in here and not event.payload.get("adopted"))


def told_of(services: Services, phase: str, tasks: Collection[str]) -> dict[str, Any]:
    """An event that tells of these tasks alone, for the log of a rehearsal."""
    row = {"phase": phase, "completed": sorted(tasks)}
    return {**legacy.told(()), "phases": [row], "files": [], "worktree": services.worktree}


def plain(phase: str) -> str:
    """`01` and `1` are one phase."""
    return ".".join(part.lstrip("0") or "0" for part in phase.split("."))


def by_phase(services: Services) -> dict[str, dict[str, Any]]:
    """What was taken over of each phase, by its number; later reports stand for earlier ones."""
    events = services.log.events(kind=EVENT)
    return {str(told["phase"]): dict(told) for event in events for told in event.payload["phases"]}
