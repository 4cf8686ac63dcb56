"""The next task of a phase, with its builder's brief, and why the other tasks wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import open_attempt, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.reading import status, task_brief
from idumb.app.session import next_steps
from idumb.app.worktree import preconditions, rewritten
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState


def view(services: Services, phase: str) -> Result:
    """Return the next task and the reasons of the others. Starts nothing. InputError if the plan cannot run."""
    preconditions.require_initialised(services)
    contract = loading.runnable(services, loading.load_phase(services, phase))
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None:
        rewritten.mark(services, state)
    _, current, statuses = status.current_run(contract, state)
    open_now = open_attempt.find(services)
    ready = [t for t in contract.order if statuses[t] in (outcome.READY, outcome.RUNNING)]
    able = ready if open_now is None else [open_now.task] if open_now.phase == contract.phase else []
    first = able[0] if able else None
    others = [t for t in contract.order if statuses[t] not in outcome.UNBLOCKING and t != first]
    waiting = [*status.open_consents(services, contract.phase), *_questions(services, current)]
    return Result(
        {
            "phase": contract.phase,
            "run": current.id if current else None,
            "contract_hash": contract.hash,
            "open": None if open_now is None else open_now.as_dict(),
            "task": None if first is None else task_brief.in_run(services, contract, current, first),
            "others": [status.other_task(contract, current, statuses, t) for t in others],
            "blocked": next_steps.blocked_groups(contract, current, statuses),
            "decisions": waiting,
            "next": _commands(services, contract, current, statuses, first, open_now, waiting),
        }
    )


def _questions(services: Services, current: RunState | None) -> list[dict[str, Any]]:
    return next_steps.pending(current, services.clock.now()) if current else []


def _commands(
    services: Services,
    contract: Contract,
    state: RunState | None,
    statuses: Mapping[str, str],
    first: str | None,
    open_now: open_attempt.OpenAttempt | None,
    waiting: Sequence[Mapping[str, Any]],
) -> list[str]:
    answer_first = ["idumb decisions"] if waiting else []
    if open_now is not None:
        return [f"idumb submit {open_now.task}", f"idumb give-up {open_now.task} --why REASON"]
    uncommitted = open_attempt.uncommitted(contract, state, services.settings) if state is not None else None
    if uncommitted is not None:
        return [f"idumb submit {uncommitted}"]
    if first is None and state is not None and any(t.status == outcome.WAITING for t in state.tasks.values()):
        return answer_first or [f"idumb resume {contract.phase}"]
    if first is None:
        failed = (t for t in contract.order if statuses[t] == outcome.FAILED and _in_editor(services, contract, t))
        retries = [f"idumb start {task} --retry" for task in failed]
        unblocking = [way for row in next_steps.blocked_groups(contract, state, statuses) for way in row["actions"]]
        return list(dict.fromkeys([*answer_first, *retries, *unblocking])) or ["idumb next"]
    start = f"idumb start {first}" if _in_editor(services, contract, first) else f"idumb execute-phase {contract.phase}"
    return [*answer_first, start] if any(row["kind"] == status.CONSENT for row in waiting) else [start]


def _in_editor(services: Services, contract: Contract, task: str) -> bool:
    return contracts.in_editor(contract.plan_of(task), contract.tasks[task], services.settings)
