"""`start` and `take`: a builder that drives idumb itself begins a task, or goes on with what another one left.

idumb prepares the attempt, then leaves it open. The stages are those of every attempt (`attempt/pipeline.py`), divided
at the work. Nothing the builder says is believed: `submit` judges the bytes.
"""

from __future__ import annotations

import dataclasses

from idumb.app.attempt import entry, pipeline, projections
from idumb.app.contract import run_lock
from idumb.app.core import open_attempt, run_lookup, schedule
from idumb.app.core.attempt import Attempt
from idumb.app.core.result import Result
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.engine import moves, runner
from idumb.app.engine.moves import Ending
from idumb.app.reading import task_brief
from idumb.app.running import admission, run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import next_steps, operation
from idumb.app.worktree import kept_work
from idumb.domain import agent, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain.action import REASON, Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import RunState, TaskState


def start(services: Services, task_name: str, by: str, flags: Request, *, retry: bool = False) -> Result:
    """Prepare one task and leave its attempt open; with `retry`, also a task that failed for good.

    `by` names the builder.
    """
    return _begin(services, task_name, by, dataclasses.replace(flags, command="start"), retry=retry)


def take(services: Services, task_name: str, by: str, flags: Request) -> Result:
    """Put what the last attempt left into the working tree, and open an attempt of the user's there."""
    return _begin(services, task_name, by, dataclasses.replace(flags, command="take"), retry=True)


def _begin(services: Services, task_name: str, by: str, flags: Request, *, retry: bool) -> Result:
    phase, task_id = run_lookup.find_task(task_name)
    request = dataclasses.replace(flags, phase=phase, in_place=True)
    contract = admission.admit(services, request)
    takes = request.command == "take"
    task = _known(contract, task_id) if takes else _buildable(services, contract, task_id)
    last = run_lookup.latest_run(services, contract.phase)
    if last is not None and last.contract.hash == contract.hash and task_id in last.tasks and not request.force:
        _require_not_ended(contract, last.tasks[task_id].status, task)  # before the run is taken up
    with operation.owned(services, request.command) as owned:
        journal = run_lifecycle.take_up(services, owned, contract, request)
        begun = run_lifecycle.supervise(
            services, journal, contract, request, lambda context: _open(context, task, by, retry=retry, takes=takes)
        )
        if isinstance(begun, Ending):  # a precondition does not hold, or a question comes first
            if begun.kind in (moves.READY.kind, "done"):
                begun = Ending("halted", journal.state.tasks[task.id].reason, task.id)
            return run_lifecycle.close(services, journal, contract, request, begun)
    return _opened(services, journal.state, contract, begun)


def _known(contract: Contract, task_id: str) -> Task:
    run_lookup.require_task(contract.tasks, task_id, contract.phase)
    return contract.tasks[task_id]


def _buildable(services: Services, contract: Contract, task_id: str) -> Task:
    task = _known(contract, task_id)
    if not contracts.in_editor(contract.plan_of(task_id), task, services.settings):
        name = contracts.builder_of(contract.plan_of(task_id), task, services.settings)
        raise Refusal(
            "task.other-builder",
            f"You cannot start {task_id}: its builder, by plan or configuration, is {name}. To build it yourself,"
            f" write `builder: {agent.EDITOR}` in the task, the plan or .idumb/config.yaml.",
            hint=phase_ids.run_command(contract.phase),
        )
    return task


def _open(context: RunContext, task: Task, by: str, *, retry: bool, takes: bool) -> Attempt | Ending:
    """Prepare the attempt; return an Ending if the task cannot be opened now."""
    run_lifecycle.make_ready(context)
    run_lock.lock_in(context)
    left = context.journal.state.tasks[task.id]
    if retry and (left.status == outcome.FAILED or (takes and left.status == outcome.WAITING)):
        context.journal.write(context.journal.event("task.reset", task.id, reason="retry"))
    _require_turn(context, task)
    ready = moves.advance(context, task, takes=takes)
    if ready is not moves.READY:
        status = context.journal.state.tasks[task.id].status
        return Ending("halted", f"{task.id} was {status}", task.id) if ready.kind == "done" else ready
    if takes:
        _take(context, left)
    attempt = runner.run_stages(context, entry.begin(context, task), pipeline.prepare)
    if attempt.outcome is not None:
        recorded = runner.run_stages(context, attempt, pipeline.refuse)
        return moves.tell(context, recorded) or moves.advance(context, task)
    opened = context.journal.event(
        open_attempt.KIND,
        task.id,
        attempt.number,
        by=by,
        phase=context.contract.phase,
        worktree=context.services.worktree,
        record=attempt.saved(context.services.clock.monotonic()),
    )
    context.journal.write(opened)
    projections.progress(context)
    return attempt


def _take(context: RunContext, left: TaskState) -> None:
    """Put what the last attempt left into the user's tree, except what he changed himself."""
    yours = kept_work.deliver_beside(context.services, left, kept_work.files(left))
    if yours:
        context.services.reporter.note(f"You changed {wording.listed(yours)} since: they stay as you have them")


def _require_turn(context: RunContext, task: Task) -> None:
    """Refuse a task whose turn it is not, and say why."""
    state, contract = context.journal.state, context.contract
    shown = schedule.statuses(contract, state)
    status = shown[task.id]
    _require_not_ended(contract, status, task)
    if status == outcome.FAILED:
        raise Refusal(
            "task.failed",
            f"{task.id} failed: {state.tasks[task.id].reason}",
            hint=f"idumb start {task.id} --retry retries it; idumb show {task.id} shows why it failed",
            details={"task": task.id},
        )
    if status == outcome.WAITING:
        open_questions = next_steps.pending(state)
        words = "waits for an answer." if open_questions else f"waits: {state.tasks[task.id].reason}"
        raise Refusal(
            "task.waiting",
            f"{task.id} {words}",
            hint=Action("decisions") if open_questions else Action.of("resume", contract.phase),
            details={"phase": contract.phase},
        )
    if status in (outcome.PENDING, outcome.BLOCKED):
        waits = wording.listed(f"{d} ({shown[d]})" for d in schedule.blockers(contract, shown, task.id))
        raise Refusal(
            "task.not-ready",
            f"{task.id} waits for {waits}.",
            hint=Action.of("next", contract.phase),
            details={"task": task.id},
        )
    other = next((t for t, s in shown.items() if s == outcome.RUNNING and t != task.id), None)
    if other is not None:
        raise Refusal(
            "task.other-unfinished",
            f"{other} is unfinished and its work is in the files, so no other task may build on it.",
            hint=f"idumb start {other} continues it; idumb skip {other} --why REASON skips it",
            details={"other": other},
        )


def _require_not_ended(contract: Contract, status: str, task: Task) -> None:
    if status in outcome.ENDED:
        raise Refusal(
            "task.already-done",
            f"{task.id} is already {status}.",
            hint=Action.of("next", contract.phase),
            details={"task": task.id},
        )


def _opened(services: Services, state: RunState, contract: Contract, attempt: Attempt) -> Result:
    task = attempt.task
    open_now = open_attempt.find(services)
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "open": None if open_now is None else open_now.as_dict(),
            "task": task_brief.in_run(services, contract, state, task.id),
            "root": services.root,
            "base": attempt.base,
            "snapshot": attempt.snapshot.commit,
            "next": [Action.of("submit", task.id), Action.of("give-up", task.id, "--why", REASON)],
        }
    )
