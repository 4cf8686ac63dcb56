"""The definitions of workflows: list, show, check and find them by name; and the state of their runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.ports.planning import DefinitionFile, ParsedPlan
from idumb.domain import errors, finding
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding
from idumb.domain.plans import workflow
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.workflow import Value
from idumb.domain.runs.run import RunState


def listing(services: Services) -> Result:
    """Return every workflow by name, with where it is defined; invalid and hidden definitions are marked."""
    rows: list[dict[str, Any]] = []
    names: set[str] = set()
    for definition in services.definitions.all():
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
    definition, plan = require(services, name)
    head = plan.workflow
    assert head is not None  # noqa: S101 - every definition has a head
    return Result(
        {
            **_place(definition),
            "hides": [
                {"origin": other.origin, "path": other.path}
                for other in services.definitions.all()
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
    definition = find(services, name)
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
    steps = {task.id: task.flow.step for task in plan.tasks if task.flow is not None}
    for task in plan.tasks:
        flow = task.flow
        assert flow is not None  # noqa: S101 - every task of a workflow is a step
        row: dict[str, Any] = {"step": flow.step, "title": task.title, "kind": flow.kind}
        row["needs"] = [steps[id] for id in task.depends_on if id in steps]
        row["outputs"] = [_value(value) for value in flow.outputs]
        if flow.kind == workflow.CONDITION:
            row |= {"if": flow.text, "then": [steps[id] for id in flow.then if id in steps]}
            row["else"] = [steps[id] for id in flow.otherwise if id in steps]
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


def find(services: Services, name: str) -> DefinitionFile:
    """Return the definition that a name means. InputError with the nearest name if there is none."""
    definitions = services.definitions.all()
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


def require(services: Services, name: str) -> tuple[DefinitionFile, Plan]:
    """Return a valid definition. InputError `workflow.invalid` with its findings."""
    definition = find(services, name)
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
    runs = [row for phase, folder in services.plans.phases() if (row := _run(services, phase, folder)) is not None]
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


def _run(services: Services, phase: str, folder: str) -> dict[str, Any] | None:
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
    present = next((d for d in services.definitions.all() if (d.name, d.origin) == (head.name, origin)), None)
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
