"""The next task of a phase, with its builder's brief: why the other tasks wait, or which agent would be asked."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from idumb.app.attempt import build, entry
from idumb.app.contract import loading
from idumb.app.core import actions, open_attempt, run_lookup, schedule
from idumb.app.core.services import Result, Services, fields
from idumb.app.ports import PromptRequest
from idumb.app.reading import status
from idumb.app.session import next_steps
from idumb.app.worktree import done_work, preconditions
from idumb.domain import agent, outcome
from idumb.domain import contract as contracts
from idumb.domain.action import Action
from idumb.domain.agent import BUILDER, capabilities_of
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState


def view(services: Services, phase: str) -> Result:
    """Return the next task and the reasons of the others. Starts nothing. InputError if the plan cannot run."""
    contract = loading.valid_contract(services, loading.load_phase(services, phase))
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None:
        done_work.mark_lost(services, state)
    current, statuses = status.current_run(services, contract, state)
    open_now = open_attempt.find(services)
    ready = [t for t in contract.order if statuses[t] in (outcome.READY, outcome.RUNNING)]
    able = ready if open_now is None else [open_now.task] if open_now.phase == contract.phase else []
    first = able[0] if able else None
    others = [t for t in contract.order if statuses[t] not in outcome.UNBLOCKING and t != first]
    asked = schedule.open_questions(current, services.clock.now()) if current else []
    away = current is not None and preconditions.way_back(services, current) is not None
    about = [row for row in status.open_questions(services) if row.get("phase") == contract.phase]
    waiting = [*about, *([] if away else asked)]
    situation = next_steps.situation(services, contract, current, statuses, waiting)
    if open_now is not None:
        situation = replace(situation, opened=open_now.task, why=open_now.words)
    return Result(
        {
            "phase": contract.phase,
            "run": current.id if current else None,
            "contract_hash": contract.hash,
            "open": None if open_now is None else open_now.as_dict(),
            "task": None if first is None else in_run(services, contract, current, first),
            "others": [status.other_task(contract, current, statuses, t) for t in others],
            "blocked": actions.blocked_groups(contract, current, statuses),
            "decisions": waiting,
            "next": list(actions.available(situation)) or [actions.NEXT],
        }
    )


def prepare(services: Services, phase: str) -> Result:
    """Return what the builder of the next task would get; if none can start, that of the first one that failed.

    Runs and records nothing. InputError if the plan cannot run.
    """
    contract = loading.valid_contract(services, loading.load_phase(services, phase))
    current, statuses = status.current_run(services, contract, run_lookup.latest_run(services, contract.phase))
    unfinished = [task for task in contract.order if statuses[task] not in outcome.ENDED]
    ready = [task for task in unfinished if statuses[task] in (outcome.READY, outcome.RUNNING)]
    failed = [task for task in unfinished if statuses[task] == outcome.FAILED]
    prepared = []
    for task in (ready or failed)[:1]:
        brief = in_run(services, contract, current, task)
        builder = contracts.builder_of(contract.plan_of[task], contract.tasks[task], services.settings)
        prompt = brief["prompt"] if capabilities_of(builder or "").reads_prompt else ""
        prepared.append({**brief, "prompt": prompt, "status": statuses[task], "agent": _agent(services, builder)})
    return Result(
        {
            "run": None,
            "phase": contract.phase,
            "outcome": "prepared",
            "contract_hash": contract.hash,
            "total": len(contract.tasks),
            "prepared": prepared,
            "next": [Action.of("execute-phase", contract.phase)] if unfinished else [actions.NEXT],
        }
    )


def _agent(services: Services, builder: str | None) -> dict[str, Any]:
    """Return the agent that would start, and its command line, or the `problem` that prevents it."""
    filled = services.settings.role(BUILDER, builder)
    row: dict[str, Any] = {"binding": builder, "model": filled.model, "timeout": filled.timeout}
    try:
        described = services.adapters.get(builder).describe() if builder is not None else ()
    except AdapterError as problem:
        return {**row, "argv": [], "problem": problem.message}
    return {**row, "argv": list(described), "problem": None}


_OF_TASK = ("id", "title", "description", "kind", "verify", "tests", "preconditions", "postconditions",
            "timeout", "references", "notes")  # fmt: skip


def in_run(services: Services, contract: Contract, state: RunState | None, task_id: str) -> dict[str, Any]:
    """Return the brief of the open or next attempt as JSON-serialisable data; times are in seconds."""
    task, plan = contract.tasks[task_id], contract.plan_of[task_id]
    known = state.tasks.get(task_id) if state is not None else None
    attempt = 1 if known is None else known.attempt.number + (known.attempt.opened is None)
    feedback = "" if known is None else entry.feedback(known)
    decided = () if state is None else build.decisions_made(state)
    settings, limits = services.settings, task.limits or plan.limits
    protected, proof = (*plan.scope.protected, *settings.protected), contracts.proofs(task)
    filled = settings.role(agent.BUILDER, contracts.builder_of(plan, task, settings))
    request = PromptRequest(
        agent.BUILDER,
        task,
        plan,
        protected,
        feedback,
        attempt,
        handover="" if known is None else known.context.handover,
        decided=decided,
    )
    return {
        **fields(task, *_OF_TASK),
        **fields(plan, "goal", "assumptions", "non_goals"),
        "plan": plan.path,
        "decided": list(decided),
        "depends_on": list(contract.dependencies[task.id]),
        "acceptance": [
            {**fields(c, "id", "text", "command", "instructions"), "proof": proof[c.id]} for c in task.acceptance
        ],
        "invariants": [asdict(invariant) for invariant in plan.invariants_of(task)],
        "files": [asdict(claim) for claim in task.files or ()],
        "allowed": list(ledger.written_paths(task.files)),
        "protected": list(dict.fromkeys((".git/**", ".idumb/**", ".planning/**", *protected))),
        "limits": None if limits is None else asdict(limits),
        "estimate": task.estimate_seconds,
        "builder": contracts.builder_of(plan, task, settings),
        "validator": contracts.validator_of(plan, task, settings),
        "attempt": attempt,
        "max_attempts": settings.run.max_attempts,
        "feedback": feedback,
        "prompt": build.prompt_of(services, filled, request),
    }
