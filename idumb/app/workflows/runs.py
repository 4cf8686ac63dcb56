"""The state of the runs of workflows, with their steps and outputs."""

from __future__ import annotations

import hashlib
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain import finding
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.plans.numbered_phases import WORKFLOW_RUNS
from idumb.domain.runs.run import RunState


def status(services: Services, name: str | None) -> Result:
    """Return the runs of all workflows, of one workflow, or the one run of a phase such as `W3`, oldest first."""
    runs = [row for phase, folder in services.plans.phases() if (row := _run(services, phase, folder)) is not None]
    if name is not None:
        chosen = [row for row in runs if name in (row["name"], row["phase"]) or _same(name, row["phase"])]
        if not chosen:
            known = [*dict.fromkeys(row["name"] for row in runs), *(row["phase"] for row in runs)]
            near = finding.did_you_mean(name, known, "idumb workflow list", "Did you mean {}?")
            raise InputError("workflow.no-run", f"No workflow {name} has run here.", hint=near)
        runs = chosen
    return Result({"runs": runs})


def _same(name: str, phase: str) -> bool:
    return WORKFLOW_RUNS.number_of(name) is not None and WORKFLOW_RUNS.number_of(name) == WORKFLOW_RUNS.number_of(phase)


def _run(services: Services, phase: str, folder: str) -> dict[str, Any] | None:
    if WORKFLOW_RUNS.number_of(phase) is None:
        return None
    loaded = loading.load(services.plans, phase, services.settings, services.policy)
    contract, state = loaded.contract, run_lookup.latest_run(services, phase)
    head = contract.plans[0].workflow if contract is not None else None
    name = head.name if head is not None else folder.rpartition("/")[2].partition("-")[2]
    return {
        "phase": phase,
        "name": name,
        "version": head.version if head is not None else None,
        "inputs": dict(head.values) if head is not None else {},
        "plan": loaded.paths[0],
        "state": "invalid" if contract is None else _state(state),
        "definition": _definition_state(services, contract),
        "steps": _steps(contract, state) if contract is not None else [],
    }


def _state(state: RunState | None) -> str:
    if state is None:
        return "not started"
    return "verified" if state.verified else state.state.lower()


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


def _steps(contract: Contract, state: RunState | None) -> list[dict[str, Any]]:
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
