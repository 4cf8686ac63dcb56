"""Check a phase's plans and show their graph, without running or writing anything."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from idumb.app import loading, schedule, session
from idumb.app.result import Result
from idumb.app.services import Services
from idumb.domain import contract as contracts
from idumb.domain import errors, graph
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.finding import errors as only_errors
from idumb.domain.run import RunState


def check(services: Services, phase: str) -> Result:
    """All findings of format, graph and readiness; `contract_hash` is what `--approve` takes."""
    loaded = loading.of(services, phase)
    findings = list(loaded.findings)
    data: dict[str, Any] = {"phase": phase, "folder": loaded.folder, "plans": list(loaded.paths)}
    contract = loaded.contract
    if contract is not None:
        findings += contracts.readiness(contract, services.settings)
        data |= {
            "phase": contract.phase,
            "mode": contract.mode,
            "tasks": len(contract.tasks),
            "contract_hash": contract.hash,
            "plan_hashes": {p.path: p.sha256 for p in contract.plans},
            "next_free_id": next_free_id(contract),
            "consent": services.consent.given(contract.hash),
            "settings_hash": services.settings.digest(),
        }
    findings.sort(key=lambda f: (f.path, f.line, f.column))
    wrong = only_errors(findings)
    data |= {
        "findings": [dataclasses.asdict(f) for f in findings],
        "errors": len(wrong),
        "warnings": len(findings) - len(wrong),
    }
    if not wrong:
        return Result(data)
    words = f"{len(wrong)} error{'s' * (len(wrong) != 1)} in phase {phase}"
    return Result(
        data,
        errors.EXIT_INVALID,
        (),
        ("plan.invalid", words, f"Correct {wrong[0].place} first, then idumb check-plan {phase}"),
    )


def next_free_id(contract: Contract) -> str:
    """The id that a new task of the phase can have."""
    used = [int(m[1]) for t in contract.tasks if (m := re.search(r"-(\d+)[a-z]?$", t))]
    return f"T{contract.phase}-{max(used, default=0) + 1:02d}"


def show_graph(
    services: Services, phase: str, render: Callable[[Contract, RunState | None, dict[str, str]], str]
) -> Result:
    """Order and waves; the text is made by `render` from contract, newest run and statuses."""
    loaded = loading.of(services, phase)
    contract = loaded.contract
    if contract is None:
        raise InputError(
            "plan.invalid",
            f"Phase {phase} has errors, so it has no graph.",
            findings=loaded.findings,
            hint=f"idumb check-plan {phase}",
        )
    state = session.latest_run(services, contract.phase)
    current = state if state is not None and set(state.tasks) >= set(contract.order) else None
    shown = schedule.statuses(contract, current or RunState())
    waves = graph.waves(contract.dependencies, contract.order)
    return Result(
        {
            "phase": contract.phase,
            "order": list(contract.order),
            "waves": [list(w) for w in waves],
            "edges": [[d, t] for t in contract.order for d in contract.dependencies[t]],
            "status": shown,
            "text": render(contract, current, shown),
        }
    )
