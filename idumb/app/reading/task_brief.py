"""The brief of a task: everything that its builder needs before it starts, as data, and its prompt."""

from __future__ import annotations

import dataclasses
from typing import Any

from idumb.app.attempt import build, entry
from idumb.app.core.services import Services
from idumb.app.ports.agents import PromptRequest
from idumb.domain import agent
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState


def in_run(services: Services, contract: Contract, state: RunState | None, task_id: str) -> dict[str, Any]:
    """Return the brief of the open or next attempt as JSON-serialisable data; times are in seconds."""
    task, plan = contract.tasks[task_id], contract.plan_of(task_id)
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
        "id": task.id,
        "title": task.title,
        "description": task.description,
        "kind": task.kind,
        "plan": plan.path,
        "goal": plan.goal,
        "assumptions": list(plan.assumptions),
        "decided": list(decided),
        "depends_on": list(contract.dependencies[task.id]),
        "acceptance": [
            {"id": c.id, "text": c.text, "proof": proof[c.id], "command": c.command, "instructions": [*c.instructions]}
            for c in task.acceptance
        ],
        "verify": list(task.verify),
        "tests": [dataclasses.asdict(test) for test in task.tests],
        "preconditions": [dataclasses.asdict(c) for c in task.preconditions],
        "postconditions": [dataclasses.asdict(c) for c in task.postconditions],
        "invariants": [{"id": i.id, "text": i.text, "check": i.check} for i in plan.invariants_of(task)],
        "files": [{"verb": c.verb, "path": c.path, "target": c.target} for c in task.files or ()],
        "allowed": list(ledger.written_paths(task.files)),
        "protected": list(dict.fromkeys((".git/**", ".idumb/**", ".planning/**", *protected))),
        "non_goals": [
            {"id": g.id, "text": g.text, "paths": list(g.paths), "symbols": list(g.symbols)} for g in plan.non_goals
        ],
        "limits": None if limits is None else dataclasses.asdict(limits),
        "estimate": task.estimate_seconds,
        "timeout": task.timeout,
        "references": task.references,
        "notes": task.notes,
        "builder": contracts.builder_of(plan, task, settings),
        "validator": contracts.validator_of(plan, task, settings),
        "attempt": attempt,
        "max_attempts": settings.run.max_attempts,
        "feedback": feedback,
        "prompt": build.prompt_of(services, filled, request),
    }
