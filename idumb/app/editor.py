"""Tasks built in the user's own tree: start, take, submit, give up.

idumb prepares the attempt, then leaves it open. The stages are those of every attempt (`attempt/pipeline.py`), divided
at the work. Nothing the builder says is believed: `submit` judges the bytes.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from idumb.app.attempt import entry, pipeline, projections
from idumb.app.contract import changed_contract, loading, run_lock
from idumb.app.core import actions, open_attempt, run_context, run_lookup, schedule
from idumb.app.core.attempt import BUILT, Attempt
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext, RunRequest
from idumb.app.core.services import Result, Services, attempt_ref
from idumb.app.engine import moves, runner, unfinished_attempts
from idumb.app.engine.moves import Ending
from idumb.app.ports import RepositoryState
from idumb.app.reading import next_task
from idumb.app.running import admission, run_lifecycle
from idumb.app.session import next_steps, operation
from idumb.app.worktree import delivery, done_work, preconditions
from idumb.domain import agent, errors, outcome, paths, wording
from idumb.domain import contract as contracts
from idumb.domain.action import REASON, Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import HALTED, INTERRUPTED, RunState, TaskState


def start(services: Services, task_name: str, by: str, flags: RunRequest, *, retry: bool = False) -> Result:
    """Prepare one task and leave its attempt open; with `retry`, also a task that failed for good.

    `by` names the builder.
    """
    return _begin(services, task_name, by, replace(flags, command="start"), retry=retry)


def take(services: Services, task_name: str, by: str, flags: RunRequest) -> Result:
    """Put what the last attempt left into the working tree, and open an attempt of the user's there."""
    return _begin(services, task_name, by, replace(flags, command="take"), retry=True)


def _begin(services: Services, task_name: str, by: str, flags: RunRequest, *, retry: bool) -> Result:
    phase, task_id = run_lookup.find_task(task_name)
    request = replace(flags, phase=phase, in_place=True)
    takes = request.command == "take"
    contract = admission.startable_contract(services, request)
    task = _startable(services, contract, task_id, request)  # before admission asks a question
    admission.admit(services, request, contract)
    with operation.owned(services, request.command) as owned:
        journal = run_lifecycle.take_up(services, owned, contract, request)
        begun = run_lifecycle.supervise(
            services, journal, contract, request, lambda context: _open(context, task, by, retry=retry, takes=takes)
        )
        if isinstance(begun, Ending):  # a precondition does not hold, or a question comes first
            if begun.kind in (moves.READY.kind, "done"):
                left = journal.state.tasks[task.id]
                begun = Ending("halted", left.reason or f"{task.id} was {left.status}", task.id)
            return run_lifecycle.close(services, journal, contract, request, begun)
    return _opened(services, journal.state, contract, begun)


def _startable(services: Services, contract: Contract, task_id: str, request: RunRequest) -> Task:
    """Return the task if the command can begin it; Refusal if it is somebody else's, or has ended."""
    run_lookup.require_task(contract.tasks, task_id, contract.phase)
    task, plan = contract.tasks[task_id], contract.plan_of[task_id]
    if request.command != "take" and not contracts.in_editor(plan, task, services.settings):
        name = contracts.builder_of(plan, task, services.settings)
        raise Refusal(
            "task.other-builder",
            f"You cannot start {task_id}: its builder, by plan or configuration, is {name}. To build it yourself,"
            f" write `builder: {agent.EDITOR}` in the task, the plan or .idumb/config.yaml.",
            hint=phase_ids.run_command(contract.phase),
        )
    last = run_lookup.latest_run(services, contract.phase)
    if last is not None and last.contract.hash == contract.hash and not request.force:
        open_attempt.require_not_ended(task_id, last.tasks[task_id].status, contract.phase)
    return task


def _open(context: RunContext, task: Task, by: str, *, retry: bool, takes: bool) -> Attempt | Ending:
    """Prepare the attempt; return an Ending if the task cannot be opened now."""
    run_lifecycle.make_ready(context)
    run_lock.lock_in(context)
    left = context.state.tasks[task.id]
    if retry and (left.status == outcome.FAILED or (takes and left.status == outcome.WAITING)):
        context.journal.append("task.reset", task.id, reason="retry")
    _require_turn(context, task)
    ready = moves.advance(context, task, takes=takes)
    if ready is not moves.READY:
        return ready
    if takes:
        _take(context, left)
    attempt = runner.run_stages(context, entry.begin(context, task), pipeline.PREPARE)
    if attempt.outcome is not None:
        recorded = runner.run_stages(context, attempt, pipeline.REFUSE)
        return moves.conclude(context, recorded) or moves.advance(context, task)
    context.journal.append(
        open_attempt.KIND,
        task.id,
        attempt.number,
        by=by,
        phase=context.contract.phase,
        worktree=context.services.worktree,
        record=attempt.saved(context.services.clock.monotonic()),
    )
    projections.write_progress(context.services, context.contract, context.state)
    return attempt


def _take(context: RunContext, left: TaskState) -> None:
    """Put what the last attempt left into the user's tree, except what he changed himself."""
    yours = delivery.deliver_kept_beside(context.services, left, delivery.kept_files(left))
    if yours:
        context.services.reporter.note(f"You changed {wording.listed(yours)} since: they stay as you have them")


def _require_turn(context: RunContext, task: Task) -> None:
    """Refuse a task whose turn it is not, and say why."""
    state, contract = context.state, context.contract
    statuses = schedule.statuses(contract, state)
    status, reason = statuses[task.id], state.tasks[task.id].reason
    other = next((t for t, s in state.tasks.items() if s.status == outcome.RUNNING and t != task.id), None)
    open_attempt.require_not_ended(task.id, status, contract.phase)
    details: dict[str, Any] = {"task": task.id}
    if status == outcome.FAILED:
        code, words, hint = "task.failed", f"failed: {reason}", Action.of("start", task.id, "--retry")
        look = Choice("look", "see why it failed", "this only reads", Action.of("show", task.id))
        details["choices"] = actions.choice_rows((look,))
    elif state.tasks[task.id].status == outcome.WAITING:
        code, words, hint = "task.waiting", f"waits: {reason}", Action.of("resume", contract.phase)
        details["phase"] = contract.phase
        if schedule.open_questions(state):
            words, hint = "waits for an answer.", Action("decisions")
    elif status in (outcome.PENDING, outcome.BLOCKED):
        waits = wording.listed(f"{d} ({statuses[d]})" for d in schedule.blockers(contract, statuses, task.id))
        code, words, hint = "task.not-ready", f"waits for {waits}.", Action.of("next", contract.phase)
    elif other is not None:
        code, words = "task.other-unfinished", f"cannot build on {other}, which is unfinished and in the files."
        hint, way = Action.of("start", other), Action.of("skip", other, "--why", REASON)
        skip = Choice("skip", f"skip {other}", "tasks that depend on it stay blocked", way)
        details = {"other": other, "choices": actions.choice_rows((skip,))}
    else:
        return
    raise Refusal(code, f"{task.id} {words}", hint=hint, details=details)


def _opened(services: Services, state: RunState, contract: Contract, attempt: Attempt) -> Result:
    task = attempt.task
    open_now = open_attempt.find(services)
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "open": None if open_now is None else open_now.as_dict(),
            "task": next_task.in_run(services, contract, state, task.id),
            "root": services.root,
            "base": attempt.base,
            "snapshot": attempt.snapshot.commit,
            "next": [Action.of("submit", task.id), Action.of("give-up", task.id, "--why", REASON)],
        }
    )


def submit(services: Services, task_name: str, flags: RunRequest, report: str = "") -> Result:
    """Judge the work of the open attempt, and commit it if it holds.

    `report` is what the builder says about its work: a claim, kept in the record.
    """
    phase, task_id = run_lookup.find_task(task_name)
    state = run_lookup.require_run(services, phase)
    open_attempt.require_open(state, task_id, committing=True)
    contract = loading.valid_contract(services, loading.load_phase(services, phase))
    changed_contract.require_contract_of_run(services, contract, state)
    request = admission.of_run(replace(flags, phase=contract.phase, in_place=True, command="submit"), state)
    admission.require_ready(services, contract, state, request)
    preconditions.require_branch(services, state)
    run_lock.require_same_environment(services, state, contract, request)
    with operation.recorded(services, "submit", state) as journal:
        preconditions.accept_guarded_files(services, journal, request.accept_git)
        if state.state in (HALTED, INTERRUPTED):
            journal.append("run.resumed", reason="submit")
        task = contract.tasks[task_id]
        attempt, ending = run_lifecycle.supervise(
            services, journal, contract, request, lambda context: _judge(context, task, report)
        )
        return _submitted(services, journal, contract, request, task, attempt, ending)


def _judge(context: RunContext, task: Task, report: str) -> tuple[Attempt | None, Ending]:
    moves.recover(context)
    run_lock.lock_in(context)
    task_state = context.state.tasks[task.id]
    # A submit was killed while it committed, and is finished or reverted by now.
    if task_state.attempt.opened is None:
        return None, moves.advance(context, task)
    done_work.refuse_lost(context.services, context.state)
    attempt = runner.run_stages(context, _built(context, task, task_state, report), pipeline.SUBMIT)
    ending = moves.conclude(context, attempt) or moves.advance(context, task)
    projections.write_progress(context.services, context.contract, context.state)
    return attempt, ending


def _built(context: RunContext, task: Task, task_state: TaskState, report: str) -> Attempt:
    """Return the attempt as it was opened, with the builder's report. Meanwhile its builder may move HEAD and refs."""
    opened, state = context.saved(task), context.state
    seconds = open_attempt.seconds_open(context.services, task_state)
    return replace(
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
    request: RunRequest,
    task: Task,
    attempt: Attempt | None,
    ending: Ending,
) -> Result:
    state = journal.state
    task_state = state.tasks[task.id]
    ended = Result()
    if ending is not moves.READY and (ending.kind != "done" or next(schedule.ready(contract, state), None) is None):
        ended = run_lifecycle.close(services, journal, contract, request, ending)
    statuses = schedule.statuses(contract, state)
    accepted = task_state.status in outcome.DONE
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "accepted": accepted,
        "task": next_steps.task_row(state, contract, task.id, statuses),
        "attempt": task_state.attempt.number,
        **_verdict(services, attempt),
        "feedback": "" if accepted else task_state.context.feedback,
        "ended": dict(ended.data) or None,
        "next": next_steps.of_run(services, contract, state, statuses, task.id),
    }
    if accepted or ended.exit_code == errors.EXIT_WAITING:
        return Result(data, ended.exit_code, ended.warnings, ended.failure, ended.details)
    following, code = data["next"][0], errors.EXIT_FAILED
    failure = ("task.not-accepted", f"{task.id} is not accepted: {task_state.reason}", following)
    if ended.failure is not None and task_state.intended:
        words = f"{task.id} is accepted, but git refused its commit: {ending.words}"
        code, failure = ended.exit_code, (ended.failure[0], words, following)
    return Result(data, code, ended.warnings, failure, ended.details)


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


def give_up(services: Services, task: str, why: str, by: str, accept_git: tuple[str, ...] = ()) -> Result:
    """Record that the open attempt was interrupted, keep its work in a snapshot, and revert it."""
    preconditions.require_reason("give-up", task, why)
    phase, task_id = run_lookup.find_task(task)
    state = run_lookup.require_run(services, phase)
    task_state = open_attempt.require_open(state, task_id)
    contract = loading.locked_contract(services, state)
    preconditions.require_guarded_files(services, state, accept_git)
    preconditions.require_branch(services, state)
    with operation.recorded(services, "give-up", state) as journal:
        preconditions.accept_guarded_files(services, journal, accept_git)
        context = run_context.opened(services, journal, contract, RunRequest(phase, in_place=True))
        reason = f"given up by {by}: {' '.join(why.split())}"
        took = open_attempt.seconds_open(services, task_state)
        before = delivery.before_taking(services, task_state, context.saved(contract.tasks[task_id]).snapshot.tree)
        unfinished_attempts.record_interruption(context, contract.tasks[task_id], reason, took)
        touched = list(state.tasks[task_id].work.touched)
        work = state.tasks[task_id].work
        conflicts = services.trees.restore(before, work.left_tree or "", touched) if touched else ()
        if conflicts:
            paths = [conflict.path for conflict in conflicts]
            words = f"{task_id} is given up, but these files changed while they were restored: {wording.listed(paths)}"
            details = {"phase": state.phase, "task": task_id, "paths": paths}
            raise Refusal("task.changed-since", words, hint="git status", details=details)
        projections.write_at_stop(services, contract, state)
    name = attempt_ref(services, state.id, task_id, task_state.attempt.number, "interrupted")
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "task": task_id,
            "attempt": task_state.attempt.number,
            "kept": services.history.kept(name) or "",
            "put_back": touched,
            "next": next_steps.of_run(services, contract, state, schedule.statuses(contract, state), task_id),
        }
    )
