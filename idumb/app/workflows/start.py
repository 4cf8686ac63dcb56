"""Starts workflows: checks their inputs, writes the plan of the run, and executes it like every other plan."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.ports.planning import DefinitionFile
from idumb.app.reading import handoffs
from idumb.app.running import admission, dry_run, execute_phase
from idumb.app.running.run_request import Request
from idumb.app.workflows import definitions
from idumb.app.worktree import preconditions
from idumb.domain import finding, outcome
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import workflow
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.runs import handoff
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.run import CLOSED


def run(
    services: Services, name: str | None, given: Mapping[str, str], request: Request, *, source: str, who: str
) -> Result:
    """Run a workflow with these inputs, given as text. The phase of `request` is ignored.

    `source` is the handoff that the run takes up, "" if none; `name` may be None if there is one. An unfinished run of
    the same bytes and inputs continues.
    """
    document = _handoff(services, source, name) if source else None
    receiver = handoff.workflow_of(document.to_agent) if document is not None else None
    definition, plan = definitions.require(services, name or receiver or "")
    values = _inputs(plan, given, document)
    origin = {"origin": definition.origin, "sha256": hashlib.sha256(definition.data).hexdigest()}
    data = workflow.run_part(definition.data, origin, values, document.handoff_id if document is not None else "")
    preconditions.require_repository(services)
    phase, folder = _place(services, definition, data)
    path = f"{folder}/{workflow.PLAN}"
    loaded = loading.load_sources(services, phase, folder, [(path, data)])
    loading.runnable(services, loading.with_links(services, loaded))
    is_new = not services.plans.plans(folder)
    if is_new:
        services.plans.hold(phase, folder, [(path, data)])
    request = dataclasses.replace(request, phase=phase)
    if request.rehearsal:
        return dry_run.rehearse(services, request)
    contract = _admitted(services, request, (path, data) if is_new else None)
    if document is not None and document.status == handoff.PENDING:
        handoffs.update(services, document.handoff_id, handoff.IN_PROGRESS, who, f"taken up by {phase}")
    return execute_phase.execute(services, request, contract)


def _admitted(services: Services, request: Request, new: tuple[str, bytes] | None) -> Contract:
    """Return the contract of the run. Its plan, if it is `new`, is written as soon as somebody agreed to it."""

    def write() -> None:
        if new is not None:
            services.reports.write_source(new[0], new[1].decode("utf-8"))

    try:
        contract = admission.admit(services, request)
    except Refusal as refused:
        if not refused.code.startswith("consent."):
            write()  # what else is missing, such as an approval, is given to the phase
        raise
    write()
    return contract


def _place(services: Services, definition: DefinitionFile, data: bytes) -> tuple[str, str]:
    """Return phase and folder of the run: those of an unfinished run of the same bytes, or the next free ones."""
    phases = services.plans.phases()
    for phase, folder in reversed(phases):
        is_run = WORKFLOW_RUNS.number_of(phase) is not None
        if is_run and [source for _, source in services.plans.plans(folder)] == [data]:
            state = run_lookup.latest_run(services, phase)
            if state is None or state.state not in CLOSED:
                return phase, folder
    taken = (*(phase for phase, _ in phases), *services.log.phases())
    number = WORKFLOW_RUNS.next_number(taken)
    return WORKFLOW_RUNS.phase(number), WORKFLOW_RUNS.folder(number, definition.name)


def _inputs(plan: Plan, given: Mapping[str, str], document: Document | None) -> dict[str, Any]:
    """Return the typed value of every input: as given, from the handoff, or the default."""
    declared = {value.name: value for value in plan.workflow.inputs} if plan.workflow is not None else {}
    handed = document.outputs if document is not None else {}
    values: dict[str, Any] = {}
    details = {"workflow": plan.title}
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        near = finding.did_you_mean(
            unknown, declared, str(Action.of("workflow", "show", plan.title)), "Did you mean {}?"
        )
        raise InputError("workflow.unknown-input", f"{plan.title} has no input {unknown}.", hint=near, details=details)
    for name, value in declared.items():
        if name in given:
            typed = workflow.from_text(value, given[name])
        else:
            typed = workflow.from_json(value, handed[name]) if name in handed else value.default
        if typed is None and name in (*given, *handed):
            found = given.get(name, workflow.shown(handed.get(name)))
            message = f"The input {name} is not {value.accepted}: {found[:80]!r}."
            raise InputError(
                "workflow.bad-input", message, hint=Action.of("workflow", "show", plan.title), details=details
            )
        if typed is None:
            message = f"{plan.title} needs the input {name}{f': {value.description}' if value.description else ''}."
            raise InputError("workflow.missing-input", message, hint=f"--input {name}=VALUE", details=details)
        values[name] = typed
    return values


def _handoff(services: Services, source: str, name: str | None) -> Document:
    document = handoffs.find(services, source)
    receiver = handoff.workflow_of(document.to_agent)
    if receiver is None or (name is not None and name != receiver):
        raise Refusal(
            "workflow.other-handoff",
            f"The handoff {document.handoff_id} is for {document.to_agent}, not for {name or 'a workflow'}.",
            hint="idumb handoff list shows the receiver of each handoff",
            details={"handoff": document.handoff_id},
        )
    if document.status not in (handoff.PENDING, handoff.IN_PROGRESS):
        raise Refusal(
            "workflow.handoff-over",
            f"The handoff {document.handoff_id} is already {document.status}.",
            hint=f"idumb handoff update {document.handoff_id} pending lets a workflow take it up again",
            details={"handoff": document.handoff_id},
        )
    task = run_lookup.run_of(services, document.run).tasks.get(document.task)
    is_done = task is not None and task.status in outcome.DONE
    if task is None or not is_done or task.attempt.number != document.attempt:
        raise Refusal(
            "workflow.handoff-stale",
            f"The handoff {document.handoff_id} is out of date: {document.task}"
            f" {'was done again' if is_done else 'was rolled back'} since.",
            hint="idumb handoff list shows newer handoffs",
            details={"handoff": document.handoff_id},
        )
    return document
