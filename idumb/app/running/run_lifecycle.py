"""The life cycle of a run: take it up or start it, run its tasks under supervision, and close it with a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from idumb.app.attempt import handoff_writer, projections
from idumb.app.consent import phase_grants
from idumb.app.contract import changed_contract, contract_versions, run_lock
from idumb.app.core import actions, run_context, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext, RunRequest
from idumb.app.core.services import Result, Services, report_path, run_ref
from idumb.app.engine import moves, runner
from idumb.app.running import admission
from idumb.app.session import failure_report, next_steps, operation, remember
from idumb.app.verify import phase_evidence, verify_work
from idumb.app.worktree import done_work, preconditions, task_base
from idumb.domain import agent, errors, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import Interrupted, Refusal, WorkFailed
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import START, RunState, run_id
from idumb.domain.settings import COMMIT_NONE, REPORTS_NONE

T = TypeVar("T")

# If tasks are left, how the loop ended decides the outcome of the run and the code of its failure.
_OUTCOMES = {"waiting": "waiting", "paused": "paused", agent.EDITOR: "waiting"}
_CODES = {
    "waiting": "run.waiting",
    "commit-refused": "git.commit-refused",
    "halted": "run.halted",
    "paused": "run.paused",
    agent.EDITOR: "run.in-editor",
}


def take_up(services: Services, owned: operation.Owned, contract: Contract, request: RunRequest) -> Journal:
    """Continue the phase's unfinished run of this contract, or start a new one; return its journal."""
    state = admission.unfinished_run(services, contract, force=request.force)
    actions.require_not_paused(state)
    journal = owned.journal(state or RunState())
    preconditions.accept_guarded_files(services, journal, request.accept_git)
    if state is None:
        admission.require_unverified(services, contract, force=request.force)
        preconditions.begin_branch(services, contract, request.branch)
        start_run(services, journal, contract, request)
    else:
        changed_contract.require_contract_of_run(services, contract, state)
        if request.branch is None or state.restoring is not None:
            preconditions.require_branch(services, state)
        else:
            preconditions.begin_branch(services, contract, request.branch)
        run_lock.require_same_environment(services, state, contract, request)
        finish_restore(services, journal, contract)
        journal.append("run.resumed", reason=f"{request.command} again", branch=services.history.head().branch)
    return journal


def finish_restore(services: Services, journal: Journal, contract: Contract) -> None:
    """Finish an interrupted rollback or undo."""
    if journal.state.restoring is None:
        return
    from idumb.app.history import restore  # it imports much, and a restore is rarely interrupted

    restore.finish_interrupted(services, journal, contract)


def start_run(services: Services, journal: Journal, contract: Contract, request: RunRequest) -> None:
    """Snapshot the base, keep the plans' bytes, record the start, and carry over completed, unchanged tasks."""
    previous = run_lookup.latest_run(services, contract.phase)
    number = services.log.last_number(contract.phase) + 1
    head = services.history.head()
    run = run_id(contract.hash, head.commit, number, services.worktree)
    base = services.trees.snapshot(run_ref(services, run, "base"), f"before run {number} of phase {contract.phase}")
    for words in task_base.not_saved(services.trees.omitted(), contract):
        services.reporter.note(words)
    sources = run_lock.require_sources(services, contract)
    blobs = {path.rsplit("/", 1)[-1]: services.trees.store(data) for path, data in sources}
    plans = services.trees.keep_blobs(run_ref(services, run, "plans"), blobs, f"plans of run {number}")
    digests = {task: contracts.task_digest(contract.tasks[task]) for task in contract.order}
    started = journal.event(
        "run.started",
        phase=contract.phase,
        folder=contract.folder,
        number=number,
        contract_hash=contract.hash,
        plans=[[p.path, p.sha256] for p in contract.plans],
        plans_object=plans,
        mode=request.mode or contract.mode,
        approval=phase_grants.newest_nonce(services, contract),
        policy=COMMIT_NONE if request.dry_run else services.settings.git.commit,
        base_commit=head.commit,
        base_tree=base.tree,
        base_snapshot=base.commit,
        branch=head.branch,
        tasks=[[task, digests[task]] for task in contract.order],
        reports=REPORTS_NONE if request.dry_run else services.settings.reports_of(contract.phase),
        guarded=dict(services.history.state().guarded),
    )
    events = [started]
    if request.force and previous is not None and previous.verified:
        events.append(journal.event("phase.forced", phase=contract.phase))
    elif previous is not None:
        events += changed_contract.events_of_carried(journal, contract, previous)
    journal.write(*(replace(event, run=run) for event in events))


def run_to_end(services: Services, journal: Journal, contract: Contract, request: RunRequest) -> Result:
    """Recover, run the tasks, write the reports, and verify."""
    return close(services, journal, contract, request, supervise(services, journal, contract, request, _run_tasks))


def supervise(
    services: Services, journal: Journal, contract: Contract, request: RunRequest, work: Callable[[RunContext], T]
) -> T:
    """Do `work` on a run. Record what stops it, add the next command to the error, and raise it again."""
    context = run_context.opened(services, journal, contract, request)
    titles = {t: contract.tasks[t].title for t in contract.order}
    services.reporter.begin(titles, schedule.statuses(contract, journal.state))
    try:
        return work(context)
    except Interrupted as interrupted:
        by = "stop" if services.owner.stop_request() else "signal"
        reason = run_lookup.why_stopped(services, interrupted)
        journal.append("run.interrupted", reason=reason, by=by)
        projections.write_at_stop(services, contract, journal.state)
        interrupted.step = actions.continuing(journal.state)
        interrupted.details = failure_report.report_interruption(services, journal.state, contract, reason)
        raise
    except (Refusal, WorkFailed) as refusal:
        services.owner.guard()
        journal.append("run.halted", reason=refusal.message)
        projections.write_at_stop(services, contract, journal.state)
        details = failure_report.report_refusal(services, journal.state, contract, refusal.message)
        if isinstance(refusal, WorkFailed):
            details = {**failure_report.report(services, journal.state, contract, None, refusal.message), **details}
        refusal.details = {"phase": contract.phase, **details, **refusal.details}
        raise
    finally:
        context.workspace.keep()


def make_ready(context: RunContext) -> None:
    """Recover from a crash, apply new answers, and require the agents and setup that the run needs."""
    moves.recover(context)
    if done_work.ask_about_lost(context):
        from idumb.app.history import rollback  # it imports much, and a run rarely starts afresh

        intent = rollback.intent_to(context.contract.phase, START)
        rollback.carry_out(context.services, context.journal, context.contract, intent)
    moves.resolve_waiting(context)
    runner.require_agents(context)
    runner.require_setup(context)
    if context.services.settings.sandbox is not None:
        runner.require_sandbox(context)


def _run_tasks(context: RunContext) -> moves.Ending:
    """Run every task that can run, once the run is recovered and locked in."""
    make_ready(context)
    if unseen := task_base.unseen(context):
        words = "Agents do not see your uncommitted changes in"
        context.services.reporter.note(f"{words} {wording.listed(unseen)}")
    run_lock.lock_in(context)
    return runner.run_tasks(context)


def close(
    services: Services, journal: Journal, contract: Contract, request: RunRequest, ending: moves.Ending
) -> Result:
    """Record how the run ended, write its reports, verify it if all tasks are done, and return its result."""
    contract = contract_versions.append_answers(services, journal, contract)
    statuses = schedule.statuses(contract, journal.state)
    done = schedule.is_settled(statuses)
    if ending.kind == "done" and actions.is_stuck(statuses):
        groups = actions.blocked_groups(contract, journal.state, statuses)
        ending = replace(ending, words=actions.blocked_summary(groups))
    kinds = {"done": "run.completed" if done else "run.failed", "paused": "run.paused"}
    final = done_work.FinalState()
    if done:
        final = done_work.compare_at_end(services, journal.state, contract, done_work.present_tree(services, contract))
    fields = {**ending.fields, **({"workspace": asdict(final)} if done else {})}
    journal.append(kinds.get(ending.kind, "run.halted"), reason=ending.words, **fields)
    if done:
        handoff_writer.finish_taken_up(services, journal, contract)
    verification = None
    if done and request.verify:
        try:  # without an approval, a strict run is not verified; its tasks stay done
            if STRICT in (contract.mode, journal.state.mode):
                phase_grants.require_approval(services, contract, base=journal.state.base.commit)
        except Refusal:
            verify_work.publish(services, journal, contract, None)
            raise
        verification = verify_work.judge(services, journal, contract, asks=not request.dry_run)
        contract = contract_versions.append_answers(services, journal, contract)
    published = verify_work.publish(services, journal, contract, verification)
    warnings = (*published, *phase_evidence.missing_opinions(verification), *remember.offer(services, journal))
    unproven = () if verification is not None else final.wrong
    warnings = (*failure_report.tolerated(journal.state, contract), *unproven, *final.words(), *warnings)
    result = _result(services, journal.state, contract, ending, statuses, verification)
    return replace(result, warnings=warnings)


def _result(
    services: Services,
    state: RunState,
    contract: Contract,
    ending: moves.Ending,
    statuses: Mapping[str, str],
    verification: Mapping[str, Any] | None,
) -> Result:
    """Return what the command answers: outcome, counts, failure, exit code and next commands."""
    following = next_steps.of_run(services, contract, state, statuses, ending.task)
    plans = (plan.path for plan in contract.plans)
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "session": state.session,
        "outcome": _outcome(ending, statuses),
        "reason": ending.words,
        "counts": dict(Counter(statuses.values())),
        "total": len(statuses),
        "contract_hash": contract.hash,
        "tasks": [next_steps.task_row(state, contract, t, statuses) for t in contract.order],
        "summary": report_path(contract.folder, "SUMMARY"),
        "reports": state.reports,
        "files_modified": len({p for t in state.attempted for p in state.tasks[t].work.touched}),
        "lock_in": None if state.contract.lock_in is None else dict(state.contract.lock_in),
        "verification": verification,
        "untracked": run_lock.uncommitted_inputs(services, plans, reports=state.commits_reports),
        "decisions": schedule.open_questions(state),
        "blocked": actions.blocked_groups(contract, state, statuses),
        "next": sorted(following, key=lambda action: action.verb != "show"),
    }
    if data["outcome"] != "complete":
        return _incomplete(services, state, contract, ending, statuses, data)
    if verification is None or verification["status"] == "passed":
        return Result(data)
    status = verification["status"]
    words = f"All tasks of phase {contract.phase} are done, but verify-work says {status}: {verification['reason']}"
    return Result(
        data,
        errors.EXIT_WAITING if status == "waiting" else errors.EXIT_FAILED,
        failure=(f"verification.{status}", words, data["next"][0]),
        details=failure_report.report_verification(services, state, contract, verification),
    )


def _outcome(ending: moves.Ending, statuses: Mapping[str, str]) -> str:
    if schedule.is_settled(statuses):
        return "complete"
    is_partial = any(status in outcome.DONE for status in statuses.values())
    return _OUTCOMES.get(ending.kind, "partial" if is_partial else "failed")


def _incomplete(
    services: Services,
    state: RunState,
    contract: Contract,
    ending: moves.Ending,
    statuses: Mapping[str, str],
    data: dict[str, Any],
) -> Result:
    """Return the answer about a run with tasks left, and why they are left."""
    failed, questions, counts = _failed_task(contract, ending, statuses), data["decisions"], data["counts"]
    words = ending.words or f"{counts.get(outcome.FAILED, 0)} failed, {counts.get(outcome.BLOCKED, 0)} blocked"
    error, waits = words, data["outcome"] in {"waiting", "paused"}
    code = errors.EXIT_WAITING if waits else errors.EXIT_FAILED
    if failed is not None:  # one whose commit git refused has no reason, and one that waits to be delivered runs
        waits = data["outcome"] == "waiting" and statuses[failed] != outcome.FAILED
        error = state.tasks[failed].reason or ending.words
    failure = failure_report.report(services, state, contract, failed, error, outcome.WAITING if waits else "")
    data["failure"] = None if failed is None else failure
    details = {**failure, **({"decisions": [d["id"] for d in questions]} if questions else {})}
    if data["outcome"] == "paused":
        details["choices"] = data["choices"] = actions.choice_rows(actions.for_paused(state))
    hint = data["next"][0]
    if ending.kind == "waiting" and not questions and hint.program == "idumb":
        task = state.tasks.get(ending.task or "")
        before = "Write the answer" if task is None or task.status == outcome.WAITING else "Commit them"
        hint = f"{'Change that' if task is not None and task.intended else before}, then {hint}"
    message = f"Phase {contract.phase} is not complete: {words}"
    return Result(data, code, failure=(_CODES.get(ending.kind, "run.failed"), message, hint), details=details)


def _failed_task(contract: Contract, ending: moves.Ending, statuses: Mapping[str, str]) -> str | None:
    """Return the task that the failure is about: the one that ended the run, if it failed, else the first that did."""
    if ending.kind == agent.EDITOR:
        return None
    if statuses.get(ending.task or "") == outcome.FAILED:
        return ending.task
    left = (task for task, status in statuses.items() if status in (outcome.FAILED, outcome.RUNNING))
    task = next(left, ending.task)
    return task if task in contract.tasks else None
