"""The structured answer of a run that did not reach its end, and what it went past."""

from __future__ import annotations

from typing import Any

from idumb.app import going_on
from idumb.app.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths, step_plan
from idumb.domain.contract import Contract
from idumb.domain.event import Event
from idumb.domain.run import RunState

STEP = "step.finished"
_OF_A_CALL = ("call", "index", "tool", "arguments", "ok", "response", "words", "plan_hash")
MOST_CALLS = 200


def structured(services: Services, state: RunState, contract: Contract, task: str | None) -> dict[str, Any] | None:
    """What failed or waits, where, with which tool, under which plan, and its audit trail; None where no task did.

    `audit_trail` has the events of the task and, of a step plan, the tool calls of the steps before it, the newest
    `MOST_CALLS`; the event log has all.
    """
    if task is None or task not in contract.tasks:
        return None
    plan = contract.plan_of(task)
    of_steps = plan.dialect == step_plan.DIALECT
    trail = list(services.log.events(run=state.id, task=task))
    calls = [e for e in trail if e.kind == STEP and not e.payload["ok"]]
    if of_steps:
        before = services.log.events(run=state.id, kind=STEP, newest_first=True, limit=MOST_CALLS)
        trail = sorted([*(e for e in before if e.task != task), *trail], key=lambda e: e.seq)
    builder = contracts.builder_of(plan, contract.tasks[task], services.settings)
    steps = contract.tasks[task].steps
    return {
        **_deviation(services, contract, state, task),
        "status": outcome.WAITING if state.tasks[task].status == outcome.WAITING else outcome.FAILED,
        "step_id": f"{task}.{calls[-1].payload['index']}" if calls and not of_steps else task,
        "tool": calls[-1].payload["tool"] if calls else steps[0].tool if of_steps else builder,
        "error": state.tasks[task].reason,
        "plan_hash": plan.sha256,
        **_could_not_work(services, state, task),
        "run": state.id,
        "audit_trail": [_entry(e) for e in trail],
    }


def _deviation(services: Services, contract: Contract, state: RunState, task: str) -> dict[str, Any]:
    """Files outside of what the task declares are a question; the same fields as every question has."""
    strays = state.tasks[task].deviations
    if not strays:
        return {}
    others = services.history.repositories(strays)
    inner = any(paths.repository_of(path, others) for path in strays)
    mine = contracts.in_editor(contract.plan_of(task), contract.tasks[task], services.settings)
    return {
        "what": f"{task} changed files it does not declare",
        "why": "They may be the builder's or your own; idumb cannot tell and reverts nothing.",
        "evidence": list(strays),
        "choices": going_on.rows(going_on.of_deviation(contract.phase, task, strays, in_editor=mine, inner=inner)),
    }


def of_refusal(services: Services, state: RunState, contract: Contract, words: str) -> dict[str, Any]:
    """The same where a run of a step plan is refused to go on; the step is the one whose turn it was."""
    if contract.plans[0].dialect != step_plan.DIALECT:
        return {}
    turn = next((t for t in contract.order if state.tasks[t].status not in outcome.DONE), None)
    found = structured(services, state, contract, turn)
    return {} if found is None else {**found, "error": words}


def _could_not_work(services: Services, state: RunState, task: str) -> dict[str, Any]:
    """Which kind of failure kept an agent from its work, and the next step; empty where it worked."""
    if state.tasks[task].failure is None:
        return {}
    ended = next(services.log.events(run=state.id, task=task, kind="attempt.finished", newest_first=True, limit=1))
    return {"failure": state.tasks[task].failure, "mend": ended.payload.get("mend", "")}


def _entry(event: Event) -> dict[str, Any]:
    known = {"seq": event.seq, "kind": event.kind, "at": event.at, "task": event.task}
    if event.kind != STEP:
        return known
    return known | {name: event.payload[name] for name in _OF_A_CALL if name in event.payload}


def tolerated(state: RunState, contract: Contract) -> tuple[str, ...]:
    """A line for each step that failed and whose plan says to go on."""
    may = (t for t in contract.order if any(s.continue_on_error for s in contract.tasks[t].steps))
    done = (state.tasks[t] for t in may if state.tasks[t].status == outcome.COMPLETED and state.tasks[t].reason)
    return tuple(f"{known.id}: {known.reason}" for known in done)
