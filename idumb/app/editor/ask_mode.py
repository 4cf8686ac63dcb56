"""Ask mode: return the briefs and prompts that builders would get. Runs and records nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.reading import status, task_brief
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.action import Action
from idumb.domain.agent import BUILDER, capabilities_of
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError
from idumb.domain.runs.run import RunState

PREPARED = "prepared"


def prepare(services: Services, phase: str) -> Result:
    """Return the brief of the next task; if none can start, that of the first one that failed.

    Reads plans, configuration and log. InputError if the plan cannot run.
    """
    contract = loading.runnable(services, loading.load_phase(services, phase))
    _, current, statuses = status.current_run(contract, run_lookup.latest_run(services, contract.phase))
    unfinished = [task for task in contract.order if statuses[task] not in outcome.ENDED]
    ready = [task for task in unfinished if statuses[task] in (outcome.READY, outcome.RUNNING)]
    failed = [task for task in unfinished if statuses[task] == outcome.FAILED]
    return Result(
        {
            "run": None,
            "phase": contract.phase,
            "outcome": PREPARED,
            "contract_hash": contract.hash,
            "total": len(contract.tasks),
            "prepared": [_prepared(services, contract, current, statuses, task) for task in (ready or failed)[:1]],
            "next": [Action.of("execute-phase", contract.phase)] if unfinished else [Action("next")],
        }
    )


def _prepared(
    services: Services, contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str
) -> dict[str, Any]:
    brief = task_brief.in_run(services, contract, state, task)
    builder = contracts.builder_of(contract.plan_of(task), contract.tasks[task], services.settings)
    prompt = brief["prompt"] if capabilities_of(builder or "").reads_prompt else ""
    return {**brief, "prompt": prompt, "status": shown[task], "agent": _agent(services, builder)}


def _agent(services: Services, builder: str | None) -> dict[str, Any]:
    """Return the agent that would start, and its command line, or the `problem` that prevents it."""
    filled = services.settings.role(BUILDER, builder)
    row: dict[str, Any] = {
        "binding": builder,
        "model": filled.model,
        "timeout": filled.timeout,
        "argv": [],
        "problem": None,
    }
    try:
        described = services.adapters.get(builder).describe() if builder is not None else ()
    except AdapterError as problem:
        return {**row, "problem": problem.message}
    return {**row, "argv": list(described)}
