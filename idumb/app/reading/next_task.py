"""The next task of a phase, with its builder's brief, and why the other tasks wait."""

from __future__ import annotations

from dataclasses import replace

from idumb.app.contract import loading
from idumb.app.core import actions, open_attempt, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.reading import status, task_brief
from idumb.app.session import next_steps
from idumb.app.worktree import preconditions, rewritten
from idumb.domain import outcome


def view(services: Services, phase: str) -> Result:
    """Return the next task and the reasons of the others. Starts nothing. InputError if the plan cannot run."""
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
    asked = next_steps.pending(current, services.clock.now()) if current else []
    away = current is not None and preconditions.way_back(services, current) is not None
    waiting = [*status.open_consents(services, contract.phase), *([] if away else asked)]
    situation = next_steps.situation(services, contract, current, statuses, waiting)
    if open_now is not None:
        situation = replace(situation, opened=open_now.task, why=open_now.words)
    return Result(
        {
            "phase": contract.phase,
            "run": current.id if current else None,
            "contract_hash": contract.hash,
            "open": None if open_now is None else open_now.as_dict(),
            "task": None if first is None else task_brief.in_run(services, contract, current, first),
            "others": [status.other_task(contract, current, statuses, t) for t in others],
            "blocked": actions.blocked_groups(contract, current, statuses),
            "decisions": waiting,
            "next": list(actions.available(situation)) or [actions.NEXT],
        }
    )
