"""Handoffs: list, show, update and count the documents that pass work to another agent or person."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from idumb.app.attempt import handoff_writer
from idumb.app.core.services import Result, Services
from idumb.app.session import operation
from idumb.domain import wording
from idumb.domain.action import Action
from idumb.domain.errors import InputError
from idumb.domain.runs import handoff
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.handoff import Document


def listing(services: Services, *, run: str | None, phase: str | None, status: str | None, agent: str | None) -> Result:
    """Return the handoffs that match, oldest first, their numbers, and those that failed. None matches all.

    `agent` is the receiver, and `run` may be a prefix of the id.
    """
    documents = [
        document
        for document in handoff_writer.all_handoffs(services)
        if document.run.startswith(run or "")
        and (phase is None or services.plans.same_phase(phase, document.workflow))
        and status in {None, document.status}
        and agent in {None, document.to_agent}
    ]
    failed = [
        {"run": e.run, "task": e.task, "to_agent": e.payload["to_agent"], "reason": e.payload["reason"]}
        for e in services.log.events(kind="handoff.failed")
        if (e.run or "").startswith(run or "") and agent in {None, e.payload["to_agent"]}
    ]
    failures = failed if phase is None and status is None else []
    stats = {
        "total": len(documents),
        "by_status": {s: sum(d.status == s for d in documents) for s in handoff.STATUSES},
        "by_type": dict(sorted(Counter(d.handoff_type for d in documents).items())),
        "by_agent": dict(sorted(Counter(d.to_agent for d in documents).items())),
        "by_phase": dict(sorted(Counter(d.workflow for d in documents).items())),
    }
    return Result({"handoffs": [_row(d) for d in documents], "failed": failures, "stats": stats})


def show(services: Services, name: str) -> Result:
    """Return one handoff, with its status changes."""
    return Result({"handoff": _details(services, name)})


def update(services: Services, name: str, status: str, who: str, why: str) -> Result:
    """Record a new status of a handoff."""
    document = find(services, name)
    if status not in handoff.STATUSES:
        raise InputError(
            "handoff.bad-status",
            f"Unknown handoff status {status!r}; choose {', '.join(handoff.STATUSES)}.",
            hint=Action.of("handoff", "update", document.handoff_id, handoff.IN_PROGRESS),
        )
    kind = handoff_writer.COMPLETED if status == handoff.COMPLETE else handoff_writer.UPDATED
    with operation.recorded(services, "handoff") as journal:
        change = {"handoff_id": document.handoff_id, "status": status, "by": who, "reason": why}
        journal.write(NewEvent(kind, change, run=document.run, task=document.task, attempt=document.attempt))
        handoff_writer.save(services, replace(document, status=status))
    return Result({"handoff": _details(services, document.handoff_id)})


def _row(document: Document) -> dict[str, Any]:
    return {**document.as_dict(), "path": handoff_writer.path(document)}


def _details(services: Services, name: str) -> dict[str, Any]:
    document = find(services, name)
    changes = [
        {"at": e.at, "status": e.payload["status"], "by": e.payload["by"], "reason": e.payload["reason"]}
        for e in handoff_writer.status_events(services)
        if e.payload["handoff_id"] == document.handoff_id
    ]
    return {**_row(document), "said": changes}


def find(services: Services, name: str) -> Document:
    """Find a handoff by its id, a prefix of it, or a task with only one, in its newest attempt."""
    documents = handoff_writer.all_handoffs(services)
    by_id = [d for d in documents if d.handoff_id.startswith(name.lower())] if name else []
    by_task = [d for d in documents if d.task.lower() == name.lower()]
    newest = [d for d in by_task if (d.run, d.attempt) == (by_task[-1].run, by_task[-1].attempt)]
    matches = by_id or newest
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = wording.listed(d.handoff_id for d in matches)
        raise InputError("handoff.ambiguous", f"{name} is ambiguous: {several}.", hint=Action.of("handoff", "list"))
    raise InputError("handoff.unknown", f"There is no handoff {name}.", hint=Action.of("handoff", "list"))
