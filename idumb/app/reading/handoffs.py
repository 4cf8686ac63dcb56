"""Handoffs as they are looked up: by run, phase, status and receiver; changed, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from idumb.app.attempt import handoff_writer
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import wording
from idumb.domain.errors import InputError
from idumb.domain.runs import handoff
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.run import RunState


@dataclass(frozen=True, slots=True)
class HandoffFilter:
    """Which handoffs; None does not choose. `run` may be the beginning of an id, `agent` is who receives."""

    run: str | None = None
    phase: str | None = None
    status: str | None = None
    agent: str | None = None


def listing(services: Services, wanted: HandoffFilter) -> Result:
    """`idumb handoff list`: the oldest first, and what could not be handed on."""
    found = _selected(services, wanted)
    failed = [
        {"run": e.run, "task": e.task, "to_agent": e.payload["to_agent"], "reason": e.payload["reason"]}
        for e in services.log.events(kind="handoff.failed")
        if (e.run or "").startswith(wanted.run or "") and wanted.agent in {None, e.payload["to_agent"]}
    ]
    failures = failed if wanted.phase is None and wanted.status is None else []
    return Result({"handoffs": [_row(d) for d in found], "failed": failures})


def show(services: Services, name: str) -> Result:
    """`idumb handoff show ID`: one with everything in it, and what was said of it since."""
    return Result({"handoff": _one(services, name)})


def update(services: Services, name: str, status: str, who: str, why: str) -> Result:
    """`idumb handoff update ID STATUS`: where the work is, by somebody's word."""
    preconditions.require_initialised(services)
    document = _find(services, name)
    if status not in handoff.STATUSES:
        raise InputError(
            "handoff.bad-status",
            f"{status!r} is no status of a handoff; there are {', '.join(handoff.STATUSES)}.",
            hint=f"idumb handoff update {document.handoff_id} {handoff.IN_PROGRESS}",
        )
    kind = handoff_writer.COMPLETED if status == handoff.COMPLETE else handoff_writer.UPDATED
    with operation.owned(services, "handoff") as owned:
        journal = owned.journal(RunState())
        said = {"handoff_id": document.handoff_id, "status": status, "by": who, "reason": why}
        journal.write(NewEvent(kind, said, run=document.run, task=document.task, attempt=document.attempt))
        handoff_writer.save(services, replace(document, status=status))
    return Result({"handoff": _one(services, document.handoff_id)})


def stats(services: Services, wanted: HandoffFilter) -> Result:
    """`idumb handoff stats`: how many there are of each status, type, receiver and phase."""
    found = _selected(services, wanted)
    counts = {
        "total": len(found),
        "by_status": {s: sum(d.status == s for d in found) for s in handoff.STATUSES},
        "by_type": _counted(d.handoff_type for d in found),
        "by_agent": _counted(d.to_agent for d in found),
        "by_phase": _counted(d.workflow for d in found),
    }
    return Result({"stats": counts})


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _selected(services: Services, wanted: HandoffFilter) -> list[Document]:
    def fits(document: Document) -> bool:
        return (
            document.run.startswith(wanted.run or "")
            and (wanted.phase is None or services.plans.same_phase(wanted.phase, document.workflow))
            and wanted.status in {None, document.status}
            and wanted.agent in {None, document.to_agent}
        )

    return [document for document in handoff_writer.known(services) if fits(document)]


def _row(document: Document) -> dict[str, Any]:
    return {**document.as_dict(), "path": handoff_writer.path(document)}


def _one(services: Services, name: str) -> dict[str, Any]:
    document = _find(services, name)
    said = [
        {"at": e.at, "status": e.payload["status"], "by": e.payload["by"], "reason": e.payload["reason"]}
        for e in handoff_writer.said(services)
        if e.payload["handoff_id"] == document.handoff_id
    ]
    return {**_row(document), "said": said}


def _find(services: Services, name: str) -> Document:
    """By its id, the beginning of it, or a task that made just one; of several attempts the newest counts."""
    every = handoff_writer.known(services)
    by_id = [d for d in every if d.handoff_id.startswith(name.lower())] if name else []
    by_task = [d for d in every if d.task.lower() == name.lower()]
    newest = [d for d in by_task if (d.run, d.attempt) == (by_task[-1].run, by_task[-1].attempt)]
    found = by_id or newest
    if len(found) == 1:
        return found[0]
    if found:
        several = wording.listed(d.handoff_id for d in found)
        raise InputError("handoff.ambiguous", f"{name} may mean {several}.", hint="idumb handoff list")
    raise InputError("handoff.unknown", f"There is no handoff {name}.", hint="idumb handoff list")
