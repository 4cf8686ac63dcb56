"""The structured answer of a run that did not complete: what failed, and the events that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import actions, questions, run_lookup
from idumb.app.core.services import Services
from idumb.app.worktree import exposed_secrets
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths
from idumb.domain.action import REASON, Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import INTERRUPTED, RunState
from idumb.domain.settings import KEEP, LEAVE_OUT

STEP = "step.finished"
_HOLDS = frozenset({evidence.PASSED, evidence.OPINION})
_OF_A_CALL = ("call", "index", "tool", "arguments", "ok", "response", "words", "plan_hash")
MOST_CALLS = 200


def report(
    services: Services, state: RunState, contract: Contract, task: str | None, error: str, status: str = ""
) -> dict[str, Any]:
    """Return the structured failure of a run: what failed or waits, where, with which tool, under which plan.

    `audit_trail` has the newest `MOST_CALLS` events of the task and, of a step plan, earlier tool calls. Without a
    task, it has those that belong to no task.
    """
    step: dict[str, Any] = {"step_id": None, "tool": None, "plan_hash": contract.plans[0].sha256}
    if task is None or task not in contract.tasks:
        newest = services.log.events(run=state.id, newest_first=True, limit=MOST_CALLS)
        trail = sorted((e for e in newest if e.task is None), key=lambda e: e.seq)
        asked, more = {}, {}
    else:
        step, trail = _step(services, state, contract, task)
        asked, more = _deviation(services, contract, state, task), _could_not_work(state, task)
        if state.tasks[task].status == outcome.WAITING:
            status = status or outcome.WAITING
    facts = {"status": status or outcome.FAILED, "error": error, "run": state.id, "phase": state.phase}
    return {**asked, **facts, **step, "audit_trail": [_entry(e) for e in trail], **more}


def _step(services: Services, state: RunState, contract: Contract, task: str) -> tuple[dict[str, Any], list[Event]]:
    """Return the step of a task at which a run stopped, with its tool and plan, and the events that led to it."""
    plan, trail = contract.plan_of[task], list(services.log.events(run=state.id, task=task))
    calls = [e for e in trail if e.kind == STEP and not e.payload["ok"]]
    builder = contracts.builder_of(plan, contract.tasks[task], services.settings)
    step_id, tool = task, calls[-1].payload["tool"] if calls else builder
    if plan.dialect == phase_ids.STEP_PLAN:
        before = services.log.events(run=state.id, kind=STEP, newest_first=True, limit=MOST_CALLS)
        trail = sorted([*(e for e in before if e.task != task), *trail], key=lambda e: e.seq)
        tool = tool if calls else contract.tasks[task].steps[0].tool
    elif calls:
        step_id = f"{task}.{calls[-1].payload['index']}"
    return {"step_id": step_id, "tool": tool, "plan_hash": plan.sha256}, trail


def report_interruption(services: Services, state: RunState, contract: Contract, words: str) -> dict[str, Any]:
    """Return the `report` of a run that a signal ended, about the step that it interrupted."""
    tried = ((state.attempted[t], t) for t in state.attempted if state.tasks[t].attempt.outcome == outcome.CANCELLED)
    _, newest = max(tried, default=(0, None))
    return report(services, state, contract, newest, words, INTERRUPTED)


def report_verification(
    services: Services, state: RunState, contract: Contract, record: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the `report` of a phase that is not verified, about the first criterion that does not hold."""
    broken = [e for e in record["evidence"] if e["result"] not in _HOLDS]
    first = broken[0] if broken else None
    lines = [f"{e['subject']}: {e['text']} ({e['result']})" for e in broken]
    return {
        **report(services, state, contract, None, record["reason"]),
        "status": outcome.WAITING if record["status"] == outcome.WAITING else outcome.FAILED,
        "step_id": None if first is None else first["subject"],
        "tool": None if first is None else (first.get("command") or "verify-work"),
        "evidence": [*lines, *record["mismatches"]],
    }


def choices(services: Services, contract: Contract, state: RunState, task: str) -> list[dict[str, Any]]:
    """Return what can be done about a task that failed or has undeclared changes: choices with their commands."""
    task_state = state.tasks[task]
    if task_state.status not in (outcome.FAILED, outcome.WAITING):
        return []
    if task_state.work.deviations:
        return actions.choice_rows(_for_deviations(services, contract, state, task))
    if task_state.status == outcome.WAITING:
        return []
    mine = contracts.in_editor(contract.plan_of[task], contract.tasks[task], services.settings)
    return actions.choice_rows(_for_failed(contract.phase, task, in_editor=mine))


def _for_failed(phase: str, task: str, *, in_editor: bool) -> tuple[Choice, ...]:
    """Return what can be done after a task failed and used up its attempts."""
    again = Action.of("start", task, "--retry") if in_editor else Action.of("resume", phase, "--retry-failed")
    taken = "its files are put into your working tree, and idumb submit judges them"
    done = "the task counts as done because you accept it, and its files are committed"
    accept, skip = (Action.of(verb, task, "--why", REASON) for verb in ("accept", "skip"))
    return (
        _look(task),
        Choice("retry", "retry it", "a new attempt gets the reasons of the last failure", again),
        Choice("take", "correct it yourself", taken, Action.of("take", task)),
        Choice("accept", "accept its work as it is", done, accept),
        Choice("skip", "skip it", "tasks that depend on it stay blocked", skip),
        actions.start_fresh(phase),
    )


def _look(task: str) -> Choice:
    return Choice("look", "see what it changed", "nothing is written or run", Action.of("show", task, "--diff"))


def _deviation(services: Services, contract: Contract, state: RunState, task: str) -> dict[str, Any]:
    """Return the fields of a question about files that the task does not declare."""
    task_state = state.tasks[task]
    if not task_state.work.deviations:
        return {}
    return {
        "what": f"{task_state.id} changed files it does not declare",
        "why": questions.NOT_DELIVERED,
        "evidence": list(task_state.work.deviations),
        "choices": actions.choice_rows(_for_deviations(services, contract, state, task)),
    }


def _for_deviations(services: Services, contract: Contract, state: RunState, task: str) -> tuple[Choice, ...]:
    """Return what can be done about deviations: no task gets a protected file, and no strict plan is widened."""
    plan, deviations, phase = contract.plan_of[task], state.tasks[task].work.deviations, contract.phase
    secret = exposed_secrets.in_any_name(services, deviations)
    guarded = run_lookup.deviations(services, state.id, task).protected
    never = [path for path in guarded if not paths.matches_any(path, paths.PROTECTED_UNLESS_DECLARED)]
    widens = not never and plan.dialect != phase_ids.STEP_PLAN and state.mode != STRICT
    amend = Action.of("amend", phase, *(word for path in deviations for word in ("--accept-deviation", task, path)))
    keep, leave_out = (Action.of("resume", phase, "--on-deviation", how) for how in (KEEP, LEAVE_OUT))
    declares = "the plan declares them, the contract is locked again, and the task is retried"
    proven = "they are proven and delivered with it; the plan does not change"
    rest = "the rest is proven again without them, then delivered"
    retried = "the builder does the task again, and learns why"
    offers = (
        (widens and not secret, Choice("amend", "they belong to the task", declares, amend)),
        (not guarded and not secret, Choice(KEEP, "they belong to the task, this once", proven, keep)),
        (not any(map(paths.is_outside, deviations)), Choice(LEAVE_OUT, "go on without them", rest, leave_out)),
        (True, Choice("retry", "they are wrong", retried, Action.of("resume", phase, "--retry-failed"))),
    )
    return (_look(task), *(choice for can_succeed, choice in offers if can_succeed))


def report_refusal(services: Services, state: RunState, contract: Contract, words: str) -> dict[str, Any]:
    """Return the `report` of a step plan that may not continue, about its next step."""
    if contract.plans[0].dialect != phase_ids.STEP_PLAN:
        return {}
    turn = next((t for t in contract.order if state.tasks[t].status not in outcome.DONE), None)
    return {} if turn is None else report(services, state, contract, turn, words)


def _could_not_work(state: RunState, task: str) -> dict[str, Any]:
    """Return which failure kept an agent from working, and the next step; empty if it worked."""
    attempt = state.tasks[task].attempt
    return {} if attempt.failure is None else {"failure": attempt.failure, "fix": attempt.next_step}


def _entry(event: Event) -> dict[str, Any]:
    entry = {"seq": event.seq, "kind": event.kind, "at": event.at, "task": event.task}
    if event.kind != STEP:
        return entry
    return entry | {name: event.payload[name] for name in _OF_A_CALL if name in event.payload}


def tolerated(state: RunState, contract: Contract) -> tuple[str, ...]:
    """Return a line for each failed step that the plan tolerates."""
    may = (t for t in contract.order if any(s.continue_on_error for s in contract.tasks[t].steps))
    done = (state.tasks[t] for t in may if state.tasks[t].status == outcome.COMPLETED and state.tasks[t].reason)
    return tuple(f"{task_state.id}: {task_state.reason}" for task_state in done)
