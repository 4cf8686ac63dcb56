"""`submit`: judges the work of the open attempt, from its bytes, by the stages of every attempt."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from idumb.app.attempt import pipeline, projections
from idumb.app.contract import changed_contract, loading, run_lock
from idumb.app.core import open_attempt, run_lookup, schedule
from idumb.app.core.attempt import BUILT, Attempt
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.engine import moves, runner
from idumb.app.engine.moves import Ending
from idumb.app.ports.repository import RepositoryState
from idumb.app.review import ask_consent
from idumb.app.running import run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import next_steps, operation
from idumb.app.worktree import preconditions, rewritten
from idumb.domain import agent, errors, outcome, paths
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.run import HALTED, INTERRUPTED, TaskState


def submit(services: Services, task_name: str, flags: Request, report: str = "") -> Result:
    """Judge the work of the open attempt, and commit it if it holds.

    `report` is what the builder says about its work: a claim, kept in the record.
    """
    phase, task_id = run_lookup.find_task(task_name)
    state = run_lookup.require_run(services, phase)
    open_attempt.require(state, task_id)
    contract = loading.runnable(services, loading.load_phase(services, phase))
    changed_contract.require_same(services, contract, state)
    request = dataclasses.replace(flags, phase=contract.phase, in_place=True, command="submit")
    preconditions.require_guarded(services, state, request.accept_git)
    preconditions.require_repository(services)
    mode = STRICT if state.mode == STRICT else None
    ask_consent.ensure(services, contract, approve=request.approve, mode=mode, judged=request.verify)
    preconditions.require_branch(services, state)
    run_lock.require_same(services, state, contract, mode=mode, accepted=request.accept_changed)
    with operation.owned(services, "submit") as owned:
        journal = owned.journal(state)
        preconditions.accept_guarded(services, journal, request.accept_git)
        if state.state in (HALTED, INTERRUPTED):
            journal.write(journal.event("run.resumed", reason="submit"))
        task = contract.tasks[task_id]
        attempt, ending = run_lifecycle.supervise(
            services, journal, contract, request, lambda context: _judge(context, task, report)
        )
        return _submitted(services, journal, contract, request, task, attempt, ending)


def _judge(context: RunContext, task: Task, report: str) -> tuple[Attempt | None, Ending]:
    moves.recover(context)
    run_lock.lock_in(context)
    task_state = context.journal.state.tasks[task.id]
    # A submit was killed while it committed, and is finished or reverted by now.
    if task_state.attempt.opened is None:
        return None, moves.advance(context, task)
    rewritten.refuse(context.services, context.journal.state)
    attempt = runner.run_stages(context, _built(context, task, task_state, report), pipeline.submit)
    ending = moves.tell(context, attempt) or moves.advance(context, task)
    projections.progress(context)
    return attempt, ending


def _built(context: RunContext, task: Task, task_state: TaskState, report: str) -> Attempt:
    """Return the attempt as it was opened, with the builder's report. Meanwhile its builder may move HEAD and refs."""
    opened, state = context.saved(task), context.journal.state
    since, now = (task_state.attempt.opened or {})["at"], context.services.clock.now()
    seconds = max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds())
    return dataclasses.replace(
        opened,
        stage=BUILT,
        started=opened.started - seconds,
        before=RepositoryState(opened.before.head, dict(state.guarded.digests or {})),
        result=agent.AgentResult(outcome.COMPLETED, report, reply=report, seconds=seconds),
    )


def _submitted(
    services: Services,
    journal: Journal,
    contract: Contract,
    request: Request,
    task: Task,
    attempt: Attempt | None,
    ending: Ending,
) -> Result:
    state = journal.state
    task_state = state.tasks[task.id]
    following = next(schedule.ready(contract, state), None)
    ended = None
    if ending is not moves.READY and (ending.kind != "done" or following is None):
        ended = run_lifecycle.close(services, journal, contract, request, ending)
    shown = schedule.statuses(contract, state)
    accepted = task_state.status in outcome.DONE
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "accepted": accepted,
        "task": next_steps.task_row(state, contract, task.id, shown),
        "attempt": task_state.attempt.number,
        **_verdict(services, attempt),
        "feedback": "" if accepted else task_state.context.feedback,
        "ended": None if ended is None else dict(ended.data),
        "next": next_steps.available(services, contract, state, shown, task.id),
    }
    warnings = () if ended is None else ended.warnings
    if accepted:
        if ended is None:
            return Result(data, warnings=warnings)
        return Result(data, ended.exit_code, warnings, ended.failure, ended.details)
    if ended is not None and ended.exit_code == errors.EXIT_WAITING:
        return Result(data, ended.exit_code, warnings, ended.failure, ended.details)
    if ended is not None and ended.failure is not None and task_state.intended:
        words = f"{task.id} is accepted, but git refused its commit: {ending.words}"
        return Result(data, ended.exit_code, warnings, (ended.failure[0], words, data["next"][0]), ended.details)
    words = f"{task.id} is not accepted: {task_state.reason}"
    details = {} if ended is None else ended.details
    return Result(data, errors.EXIT_FAILED, warnings, ("task.not-accepted", words, data["next"][0]), details)


def _verdict(services: Services, attempt: Attempt | None) -> dict[str, Any]:
    """Return what was judged and how; empty if an earlier submit was judged and only finished now.

    `undeclared` are the other files that changed since the attempt began: they are left alone.
    """
    if attempt is None:
        return {"outcome": None, "verdict": None, "evidence": [], "ledger": [], "undeclared": []}
    changes = services.trees.changes(attempt.base, attempt.candidate) if attempt.candidate else ()
    others = (change.path for change in changes if change.path not in attempt.changed)
    return {
        "outcome": attempt.outcome,
        "verdict": attempt.verdict,
        "evidence": [e.as_dict() for e in attempt.evidence],
        "ledger": attempt.ledger.as_list(),
        "undeclared": [path for path in others if not paths.matches_any(path, paths.OWN_FILES)],
    }
