"""Writes handoffs: a completed task passes its work on to each receiver that it names. A failure here stops no run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from idumb.app.core.attempt import Attempt
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, InputError
from idumb.domain.plans.plan import Task
from idumb.domain.runs import handoff
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.run import RunState

FOLDER = ".idumb/brain/handoffs"
CREATED = "handoff.created"
UPDATED = "handoff.updated"
COMPLETED = "handoff.completed"
_SUMMARY = 4000


def events_of_attempt(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    """Return the events of the handoffs of a task that an attempt completed."""
    lines = [f"{line.path} ({line.actual})" for line in attempt.ledger.lines]
    summary = attempt.result.reply or attempt.result.message if attempt.result else ""
    summary = str(attempt.outputs.get("summary") or summary)
    return _of_task(context.services, context.journal, context.contract, attempt.task, summary, lines, attempt.outputs)


def events_of_accepted(services: Services, journal: Journal, contract: Contract, task: str, why: str) -> list[NewEvent]:
    """Return the events of the handoffs of a task that a person accepted."""
    summary, touched = f"accepted by a person: {why}", journal.state.tasks[task].work.touched
    return _of_task(services, journal, contract, contract.tasks[task], summary, touched, {})


def _of_task(
    services: Services,
    journal: Journal,
    contract: Contract,
    task: Task,
    summary: str,
    deliverables: Sequence[str],
    outputs: Mapping[str, Any],
) -> list[NewEvent]:
    """Return an event for each receiver of a completed task: the handoff, or why there is none."""
    events = []
    attempt = journal.state.tasks[task.id].attempt.number or 1
    for number, target in enumerate(task.handoff_to, 1):
        if handoff.type_of(target.type) == handoff.NEVER:
            continue
        document = Document(
            handoff.new_id(journal.state.id, task.id, attempt, number),
            contracts.builder_of(contract.plan_of[task.id], task, services.settings) or "human",
            target.agent,
            journal.operation,
            services.clock.now(),
            handoff.type_of(target.type),
            priority=task.priority,
            title=task.title,
            summary=summary[:_SUMMARY],
            deliverables=tuple(deliverables),
            acceptance_criteria=tuple(f"{c.id}: {c.text}" for c in task.acceptance),
            next_steps=task.notes or task.description,
            workflow=contract.phase,
            run=journal.state.id,
            task=task.id,
            attempt=attempt,
            outputs=dict(outputs),
        )
        events.append(_event(services, journal, document))
    return events


def _event(services: Services, journal: Journal, document: Document) -> NewEvent:
    wrong = handoff.problems(document, handoff.agents(services.settings)) + _unknown_workflow(services, document)
    if not wrong:
        return journal.event(CREATED, document.task, document.attempt, **document.as_dict())
    services.reporter.note(f"{document.task} is not handed on to {document.to_agent}: {'; '.join(wrong)}")
    return journal.event(
        "handoff.failed", document.task, document.attempt, to_agent=document.to_agent, reason="; ".join(wrong)
    )


def _unknown_workflow(services: Services, document: Document) -> tuple[str, ...]:
    """Return the problem of a receiver that is a workflow without a definition."""
    name = handoff.workflow_of(document.to_agent)
    if name is None:
        return ()
    try:
        names = {definition.name for definition in services.definitions.all}
    except InputError as problem:  # a folder that cannot be read
        return (f"to_agent: {problem.message}",)
    return () if name in names else (f"to_agent: there is no workflow {name}",)


def path(document: Document) -> str:
    """Return where a handoff is kept for its receiver. The name contains only words that idumb made."""
    return f"{FOLDER}/{document.handoff_id}.md"


def write_of_task(context: RunContext, task: Task) -> None:
    """Write the handoffs of a completed task at once, because a receiver may be waiting."""
    for document in all_handoffs(context.services, context.run) if task.handoff_to else ():
        if document.task == task.id:
            save(context.services, document)


def save(services: Services, document: Document) -> None:
    """Write a handoff. A failure is reported and stops nothing: the log has all of it."""
    try:
        text = services.redactor.redact(services.documents.handoff(document))
        if services.files.read(path(document)) != text:
            services.files.write(path(document), text)
    except (IdumbError, OSError) as problem:
        services.reporter.note(f"{path(document)} could not be written: {problem}")


def write_of_run(services: Services, state: RunState) -> tuple[str, ...]:
    """Write the handoffs of a run that are missing or outdated; return the paths of all of them."""
    documents = all_handoffs(services, state.id)
    for document in documents:
        save(services, document)
    return tuple(path(document) for document in documents)


def finish_taken_up(services: Services, journal: Journal, contract: Contract) -> None:
    """Complete the handoff that a workflow took up, once its run is done."""
    head = contract.plans[0].workflow
    taken_up = head.origin.get("handoff") if head is not None else None
    document = next((d for d in all_handoffs(services) if d.handoff_id == taken_up), None) if taken_up else None
    if document is None or document.status == handoff.COMPLETE:
        return
    reason = f"done by {contract.phase}"
    change = {"handoff_id": document.handoff_id, "status": handoff.COMPLETE, "by": contract.phase, "reason": reason}
    journal.write(NewEvent(COMPLETED, change, run=document.run, task=document.task, attempt=document.attempt))
    save(services, replace(document, status=handoff.COMPLETE))


def all_handoffs(services: Services, run: str | None = None) -> tuple[Document, ...]:
    """Return every handoff of a run, or of all runs, the oldest first, with its present status."""
    standing = {e.payload["handoff_id"]: e.payload["status"] for e in status_events(services)}
    created = (convert(e.payload, Document) for e in services.log.events(run=run, kind=CREATED))
    return tuple(replace(d, status=standing.get(d.handoff_id, d.status)) for d in created)


def status_events(services: Services) -> Iterator[Event]:
    """Yield the later events of handoffs in order. Old ones name neither run nor task."""
    updates = [*services.log.events(kind=UPDATED), *services.log.events(kind=COMPLETED)]
    yield from sorted(updates, key=lambda event: event.seq)
