"""Workflows: their definitions, how a run starts, and how the runs stand.

A run is the plan of a phase, which is written here and then executed like every other plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from idumb.app.contract import loading
from idumb.app.core import actions, run_lookup, schedule
from idumb.app.core.services import Result, Services, same_command
from idumb.app.ports import DefinitionFile, ParsedPlan
from idumb.app.reading import handoffs
from idumb.app.worktree import preconditions
from idumb.domain import errors, finding, outcome
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import Finding
from idumb.domain.plans import workflow
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.workflow import Value
from idumb.domain.runs import handoff
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.run import CLOSED, RunState

if TYPE_CHECKING:
    from idumb.app.core.run_context import RunRequest


def listing(services: Services) -> Result:
    """Return every workflow by name, with where it is defined; invalid and hidden definitions are marked."""
    rows: list[dict[str, Any]] = []
    names: set[str] = set()
    for definition in services.definitions.all:
        parsed = services.definitions.parse(definition)
        head = parsed.plan.workflow if parsed.plan is not None else None
        rows.append(
            {
                **_place(definition),
                "version": head.version if head is not None else None,
                "description": head.description if head is not None else "",
                "inputs": [value.name for value in head.inputs] if head is not None else [],
                "errors": len(finding.errors(parsed.findings)),
                "hidden": definition.name in names,
            }
        )
        names.add(definition.name)
    return Result({"workflows": rows})


def show(services: Services, name: str) -> Result:
    """Return a definition: its inputs, and its steps by phase in the order in which they run."""
    definition, plan = _require(services, name)
    head = plan.workflow
    assert head is not None  # noqa: S101 - every definition has a head
    return Result(
        {
            **_place(definition),
            "hides": [
                {"origin": other.origin, "path": other.path}
                for other in services.definitions.all
                if other.name == name and other is not definition
            ],
            "version": head.version,
            "description": head.description,
            "inputs": [_value(value) for value in head.inputs],
            "phases": _phases(plan),
        }
    )


def check(services: Services, name: str) -> Result:
    """Return every finding of a definition, with the default inputs; the answer is no if one is an error."""
    definition = _find(services, name)
    parsed = services.definitions.parse(definition)
    findings = _findings(services, definition, parsed)
    wrong = finding.errors(findings)
    data = {**_place(definition), "findings": [each.as_dict() for each in findings], "errors": len(wrong)}
    if not wrong:
        return Result(data)
    count = f"{len(wrong)} error{'s' * (len(wrong) != 1)}"
    return Result(
        data,
        errors.EXIT_INVALID,
        failure=("workflow.invalid", f"The workflow {name} has {count}.", Action.of("workflow", "check", name)),
    )


def _findings(services: Services, definition: DefinitionFile, parsed: ParsedPlan) -> Sequence[Finding]:
    if parsed.plan is None:
        return parsed.findings
    phase, folder = parsed.plan.phase, WORKFLOW_RUNS.folder(0, definition.name)
    sources = [(definition.path, definition.data)]
    loaded = loading.assemble(
        phase, folder, [(definition.path, parsed)], services.settings, sources, policy=services.policy
    )
    return workflow.by_steps(loading.all_findings(services, loading.with_links(services, loaded)), parsed.plan.tasks)


def _phases(plan: Plan) -> list[dict[str, Any]]:
    phases: dict[str, list[dict[str, Any]]] = {}
    flows = {task.id: task.flow for task in plan.tasks if task.flow is not None}  # every task is a step
    for task in plan.tasks:
        flow = flows[task.id]
        row: dict[str, Any] = {"step": flow.step, "title": task.title, "kind": flow.kind}
        row["needs"] = [flows[id].step for id in task.depends_on]
        row["outputs"] = [_value(value) for value in flow.outputs]
        if flow.kind == workflow.CONDITION:
            row |= {"if": flow.text, "then": [flows[id].step for id in flow.then]}
            row["else"] = [flows[id].step for id in flow.otherwise]
        if task.rollback.kind != "reversible":
            row["rollback"] = task.rollback.kind
        phases.setdefault(flow.phase, []).append(row)
    return [{"title": title, "steps": rows} for title, rows in phases.items()]


def _value(value: Value) -> dict[str, Any]:
    row: dict[str, Any] = {"name": value.name, "type": value.type, "description": value.description}
    row |= {"choices": list(value.choices)} if value.choices else {}
    row |= {"file": value.file} if value.file else {}
    return row | ({"default": value.default} if value.default is not None else {})


def _place(definition: DefinitionFile) -> dict[str, Any]:
    sha256 = hashlib.sha256(definition.data).hexdigest()
    return {"name": definition.name, "origin": definition.origin, "path": definition.path, "sha256": sha256}


def _find(services: Services, name: str) -> DefinitionFile:
    """Return the definition that a name means. InputError with the nearest name if there is none."""
    definitions = services.definitions.all
    found = next((definition for definition in definitions if definition.name == name), None)
    if found is not None:
        return found
    near = finding.nearest(name, (definition.name for definition in definitions))
    raise InputError(
        "workflow.unknown",
        f"There is no workflow {name}.{f' Did you mean {near}?' if near else ''}",
        hint=Action.of("workflow", "show", near) if near else Action.of("workflow", "list"),
        details={"nearest": near} if near else {},
    )


def _require(services: Services, name: str) -> tuple[DefinitionFile, Plan]:
    """Return a valid definition. InputError `workflow.invalid` with its findings."""
    definition = _find(services, name)
    parsed = services.definitions.parse(definition)
    if parsed.plan is None:
        raise InputError(
            "workflow.invalid",
            f"The workflow {name} is not valid.",
            findings=parsed.findings,
            hint=Action.of("workflow", "check", name),
        )
    return definition, parsed.plan


def status(services: Services, name: str | None) -> Result:
    """Return the runs of all workflows, of one workflow, or the one run of a phase such as `W3`, oldest first."""
    runs = [row for phase, folder in services.plans.phases() if (row := _run_row(services, phase, folder)) is not None]
    if name is not None:
        number = WORKFLOW_RUNS.number_of(name)
        by_number = [row for row in runs if number is not None and number == WORKFLOW_RUNS.number_of(row["phase"])]
        chosen = by_number or [row for row in runs if name == row["name"]]
        if not chosen:
            known = [*dict.fromkeys(row["name"] for row in runs), *(row["phase"] for row in runs)]
            near = finding.did_you_mean(name, known, str(Action.of("workflow", "list")), "Did you mean {}?")
            raise InputError("workflow.no-run", f"No workflow {name} has run here.", hint=near)
        runs = chosen
    return Result({"runs": runs})


def _run_row(services: Services, phase: str, folder: str) -> dict[str, Any] | None:
    if WORKFLOW_RUNS.number_of(phase) is None:
        return None
    loaded = loading.load_present(services, phase)
    contract, state = loaded.contract, run_lookup.latest_run(services, phase)
    head = contract.plans[0].workflow if contract is not None else None
    name = head.name if head is not None else folder.rpartition("/")[2].partition("-")[2]
    word = "not started" if state is None else "verified" if state.verified else state.state.lower()
    word = "invalid" if contract is None else word
    return {
        "phase": phase,
        "name": name,
        "version": head.version if head is not None else None,
        "inputs": dict(head.values) if head is not None else {},
        "plan": loaded.paths[0],
        "state": word,
        "definition": _definition_state(services, contract),
        "steps": _run_steps(contract, state) if contract is not None else [],
    }


def _definition_state(services: Services, contract: Contract | None) -> str:
    """Return whether the definition is still the one that the run is pinned to: `same`, `changed` or `gone`."""
    head = contract.plans[0].workflow if contract is not None else None
    if head is None:
        return "gone"
    origin = head.origin.get("origin")
    present = next((d for d in services.definitions.all if (d.name, d.origin) == (head.name, origin)), None)
    if present is None:
        return "gone"
    return "same" if hashlib.sha256(present.data).hexdigest() == head.origin.get("sha256") else "changed"


def _run_steps(contract: Contract, state: RunState | None) -> list[dict[str, Any]]:
    known = state if state is not None and set(state.tasks) == set(contract.order) else RunState()
    statuses = schedule.statuses(contract, known)
    rows = []
    for task in contract.plans[0].tasks:
        task_state, flow = known.tasks.get(task.id), task.flow
        row: dict[str, Any] = {"task": task.id, "step": flow.step if flow is not None else "", "title": task.title}
        row |= {"kind": flow.kind if flow is not None else "", "status": statuses[task.id]}
        row["reason"] = task_state.reason if task_state is not None else ""
        row["outputs"] = dict(task_state.outputs) if task_state is not None else {}
        rows.append(row)
    return rows


def run(
    services: Services, name: str | None, given: Mapping[str, str], request: RunRequest, *, source: str, who: str
) -> Result:
    """Run a workflow with these inputs, given as text. The phase of `request` is ignored.

    `source` is the handoff that the run takes up, "" if none; `name` may be None if there is one. An unfinished run of
    the same bytes and inputs continues.
    """
    from idumb.app.running import dry_run, execute_phase  # only a run needs the engine

    document = _handoff(services, source, name) if source else None
    receiver = handoff.workflow_of(document.to_agent) if document is not None else None
    definition, plan = _require(services, name or receiver or "")
    values = _inputs(services, plan, given, document)
    origin = {"origin": definition.origin, "sha256": hashlib.sha256(definition.data).hexdigest()}
    data = workflow.run_part(definition.data, origin, values, document.handoff_id if document is not None else "")
    preconditions.require_repository(services)
    phase, folder = _phase_of_run(services, definition, data)
    path = f"{folder}/{workflow.PLAN}"
    is_new = not services.plans.plans(folder)
    if is_new:
        services.plans.hold(phase, folder, [(path, data)])
    request = replace(request, phase=phase)
    if request.dry_run:
        return dry_run.rehearse(services, request)
    contract = _admitted(services, request, (path, data) if is_new else None)
    if document is not None and document.status == handoff.PENDING:
        handoffs.update(services, document.handoff_id, handoff.IN_PROGRESS, who, f"taken up by {phase}")
    return execute_phase.execute(services, request, contract if is_new else None)


def _admitted(services: Services, request: RunRequest, new: tuple[str, bytes] | None) -> Contract:
    """Return the contract of the run. Its plan, if it is `new`, is written as soon as somebody agreed to it."""
    from idumb.app.running import admission

    def write() -> None:
        if new is not None:
            services.files.write_source(new[0], new[1].decode("utf-8"))

    try:
        contract = admission.admit(services, request)
    except Refusal as refused:
        if not refused.code.startswith("consent."):
            write()  # what else is missing, such as an approval, is given to the phase
        raise
    write()
    return contract


def _phase_of_run(services: Services, definition: DefinitionFile, data: bytes) -> tuple[str, str]:
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


def _inputs(services: Services, plan: Plan, given: Mapping[str, str], document: Document | None) -> dict[str, Any]:
    """Return the typed value of every input: as given, from the handoff, or the default."""
    declared = {value.name: value for value in plan.workflow.inputs} if plan.workflow is not None else {}
    handed = document.outputs if document is not None else {}
    values: dict[str, Any] = {}
    details, show = {"workflow": plan.title}, Action.of("workflow", "show", plan.title)
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        near = finding.did_you_mean(unknown, declared, str(show), "Did you mean {}?")
        raise InputError("workflow.unknown-input", f"{plan.title} has no input {unknown}.", hint=near, details=details)
    for name, value in declared.items():
        if name in given:
            typed = workflow.from_text(value, given[name])
        else:
            typed = workflow.from_json(value, handed[name]) if name in handed else value.default
        if typed is None and name in (*given, *handed):
            found = given.get(name, workflow.shown(handed.get(name)))
            message = f"The input {name} is not {value.accepted}: {found[:80]!r}."
            raise InputError("workflow.bad-input", message, hint=show, details=details)
        if typed is None:
            message = f"{plan.title} needs the input {name}{f': {value.description}' if value.description else ''}."
            more = same_command(services, "--input", f"{name}=VALUE")
            raise InputError("workflow.missing-input", message, hint=more, details=details)
        values[name] = typed
    return values


def _handoff(services: Services, source: str, name: str | None) -> Document:
    document = handoffs.find(services, source)
    receiver = handoff.workflow_of(document.to_agent)
    if receiver is None or (name is not None and name != receiver):
        words = f"is for {document.to_agent}, not for {name or 'a workflow'}."
        raise _unusable(document, "workflow.other-handoff", words)
    if document.status not in (handoff.PENDING, handoff.IN_PROGRESS):
        reopen = Action.of("handoff", "update", document.handoff_id, handoff.PENDING)
        again = Choice("again", "let a workflow take it up again", "then run the command again", reopen)
        raise _unusable(document, "workflow.handoff-over", f"is already {document.status}.", reopen, again)
    task = run_lookup.run_of(services, document.run).tasks.get(document.task)
    is_done = task is not None and task.status in outcome.DONE
    if task is None or not is_done or task.attempt.number != document.attempt:
        words = f"is out of date: {document.task} {'was done again' if is_done else 'was rolled back'} since."
        raise _unusable(document, "workflow.handoff-stale", words)
    return document


_LIST = Action.of("handoff", "list")


def _unusable(document: Document, code: str, words: str, hint: Action = _LIST, *choices: Choice) -> Refusal:
    details = {"handoff": document.handoff_id, **({"choices": actions.choice_rows(choices)} if choices else {})}
    return Refusal(code, f"The handoff {document.handoff_id} {words}", hint=hint, details=details)
