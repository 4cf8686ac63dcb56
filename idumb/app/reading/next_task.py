"""The next task of a phase, with everything that its builder is owed, and why the other tasks wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import build, entry
from idumb.app.contract import contract_versions, loading
from idumb.app.core import blocked_tasks, open_attempt, run_lookup, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.reading import status, task_brief
from idumb.app.session import next_steps
from idumb.app.worktree import preconditions
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState


def view(services: Services, phase: str) -> Result:
    """Reads plan and log; nothing is begun. InputError where the plan cannot be run."""
    preconditions.require_initialised(services)
    contract = loading.runnable(services, loading.of(services, phase))
    state = run_lookup.latest_run(services, contract.phase)
    state = contract_versions.foreseen(state, contract.hash) if state is not None else None
    current = state if state is not None and state.contract.hash == contract.hash else None
    shown = schedule.statuses(contract, current or status.blank_state(contract, state))
    found = open_attempt.find(services)
    ready = [t for t in contract.order if shown[t] in (outcome.READY, outcome.RUNNING)]
    able = ready if found is None else [found.task] if found.phase == contract.phase else []
    first = able[0] if able else None
    others = [t for t in contract.order if shown[t] not in outcome.DONE and t != first]
    waiting = [*status.open_consents(services, contract.phase), *(next_steps.pending(current) if current else [])]
    return Result(
        {
            "phase": contract.phase,
            "run": current.id if current else None,
            "contract_hash": contract.hash,
            "open": None if found is None else found.as_dict(),
            "task": None if first is None else _brief(services, contract, current, first),
            "others": [status.other_task(contract, current, shown, t) for t in others],
            "blocked": blocked_tasks.groups(contract, current, shown),
            "decisions": waiting,
            "next": _commands(services, contract, current, shown, first, found, waiting),
        }
    )


def _brief(services: Services, contract: Contract, state: RunState | None, task: str) -> dict[str, Any]:
    known = state.tasks[task] if state is not None else None
    if state is None or known is None:
        return task_brief.of(services, contract, contract.tasks[task], attempt=1, feedback="")
    number = known.attempt.number + (known.attempt.opened is None)
    said = entry.feedback(known)
    return task_brief.of(
        services,
        contract,
        contract.tasks[task],
        attempt=number,
        feedback=said,
        decided=build.decisions_made(state),
    )


def _commands(
    services: Services,
    contract: Contract,
    state: RunState | None,
    shown: Mapping[str, str],
    first: str | None,
    found: open_attempt.Opened | None,
    waiting: Sequence[Mapping[str, Any]],
) -> list[str]:
    asked = ["idumb decisions"] if waiting else []
    if found is not None:
        return [f"idumb submit {found.task}", f"idumb give-up {found.task} --why REASON"]
    uncommitted = open_attempt.uncommitted(contract, state, services.settings) if state is not None else None
    if uncommitted is not None:
        return [f"idumb submit {uncommitted}"]
    if first is None and state is not None and any(t.status == outcome.WAITING for t in state.tasks.values()):
        return asked or [f"idumb resume {contract.phase}"]
    if first is None:
        failed = (t for t in contract.order if shown[t] == outcome.FAILED and _in_editor(services, contract, t))
        again = [f"idumb start {task} --retry" for task in failed]
        held = [way for one in blocked_tasks.groups(contract, state, shown) for way in one["actions"]]
        return list(dict.fromkeys([*asked, *again, *held])) or ["idumb next"]
    start = f"idumb start {first}" if _in_editor(services, contract, first) else f"idumb execute-phase {contract.phase}"
    return [*asked, start] if any(one["kind"] == status.CONSENT for one in waiting) else [start]


def _in_editor(services: Services, contract: Contract, task: str) -> bool:
    return contracts.in_editor(contract.plan_of(task), contract.tasks[task], services.settings)
