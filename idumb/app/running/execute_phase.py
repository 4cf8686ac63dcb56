"""Execute a phase: consent, one owner, a new run or the unfinished one, every task, the reports, then verify-work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from idumb.app.attempt import builder_commits, projections
from idumb.app.consent import approvals
from idumb.app.contract import (
    carried_tasks,
    changed_contract,
    contract_lock,
    contract_versions,
    environment_lock,
    loading,
    plan_answers,
)
from idumb.app.core import blocked_tasks, next_actions, projection_paths, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.run_context import Bench
from idumb.app.core.services import Services, kept_at, run_ref
from idumb.app.engine import recovery, runner
from idumb.app.review import ask_consent
from idumb.app.roles import opinions
from idumb.app.running import outside_work
from idumb.app.session import failure_report, next_steps, open_run, operation
from idumb.app.verify import verify_work
from idumb.app.worktree import abandoned_clones, final_state, preconditions, run_branch, task_base
from idumb.domain import contract as contracts
from idumb.domain import errors, listing, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import Interrupted, Refusal, WorkFailed
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import COMPLETED, RunState, run_id
from idumb.domain.settings import COMMIT_NONE

T = TypeVar("T")
_IN_EDITOR = frozenset({"start", "submit"})


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `execute-phase`; None means that the configuration decides.

    `again` is the command to which `--approve HASH` is added where consent is missing, None for that of the phase.
    """

    phase: str
    approve: tuple[str, ...] = ()
    mode: str | None = None
    max_attempts: int | None = None
    on_deviation: str | None = None
    verify: bool = True
    force: bool = False
    workspace: str | None = None
    branch: str | None = None
    accept_git: tuple[str, ...] = ()
    approval: str | None = None
    deterministic: bool = False
    accept_changed: tuple[str, ...] = ()
    command: str = "execute-phase"
    rehearsal: bool = False
    again: str | None = None


def execute(services: Services, request: Request, prepared: Contract | None = None) -> Result:
    """Start the phase's run, or go on with the unfinished run of the same contract.

    `prepared` is a contract that the caller has from `prepare`, or made and asked consent for in the same way.
    """
    contract = prepared or prepare(services, request)
    with operation.owned(services, request.command) as owned:
        journal = taken_up(services, owned, contract, request)
        return conclude(services, journal, contract, request, at_work(services, journal, contract, request, _run_all))


def taken_up(services: Services, owned: operation.Owned, contract: Contract, request: Request) -> Journal:
    """The journal of the phase's unfinished run of this contract, or of one that begins here."""
    state = unfinished(services, contract, force=request.force)
    next_actions.require_not_paused(state)
    journal = owned.journal(state or RunState())
    preconditions.accept_guarded(services, journal, request.accept_git)
    if state is None:
        refuse_verified(services, contract, force=request.force)
        run_branch.begin(services, contract, request.branch)
        start(services, journal, contract, request)
    else:
        from idumb.app.history import restoring

        changed_contract.same_contract(services, contract, state)
        preconditions.require_branch(services, state)
        environment_lock.require_same(services, state, contract, mode=request.mode, accepted=request.accept_changed)
        restoring.settle(services, journal, contract)
        journal.write(journal.event("run.resumed", reason=f"{request.command} again"))
    return journal


def prepare(services: Services, request: Request) -> Contract:
    """Everything that can refuse before anything is touched."""
    preconditions.require_initialised(services)
    if request.command not in _IN_EDITOR:
        builder_commits.require_clone(services.settings, request.workspace)
    contract = loading.runnable(services, loading.of(services, request.phase))
    if request.mode is not None and request.mode != STRICT and contract.mode == STRICT:
        raise Refusal(
            "mode.strict-plan",
            "The plan says `mode: strict`; --mode guided cannot soften it.",
            hint="Change the plan's mode, or leave --mode away",
            details={"phase": contract.phase},
        )
    state = run_lookup.latest_run(services, contract.phase)
    if (request.workspace or _workspace(services, request)) == builder_commits.CLONE and not request.rehearsal:
        services.clones.require_place()
    preconditions.require_guarded(services, state, request.accept_git)
    preconditions.require_repository(services)
    ask_consent.ensure(
        services,
        contract,
        approve=request.approve,
        mode=request.mode,
        approval=request.approval,
        rehearsal=request.rehearsal,
        earlier=state.contract.earlier if state is not None and state.contract.hash == contract.hash else (),
        again=request.again,
        judged=request.verify,
    )
    return contract


def unfinished(services: Services, contract: Contract, *, force: bool) -> RunState | None:
    """The phase's newest run, if it is of this contract and has something left to do: at least to be verified."""
    state = run_lookup.latest_run(services, contract.phase)
    known = contract_versions.foreseen(state, contract.hash) if state is not None else None
    if known is None or known.contract.hash != contract.hash:
        return None
    ended = known.state == COMPLETED and known.restoring is None
    return None if ended and (known.verified or force) else state


def refuse_verified(services: Services, contract: Contract, *, force: bool) -> None:
    state = run_lookup.latest_run(services, contract.phase)
    state = contract_versions.foreseen(state, contract.hash) if state is not None else None
    if not force and (state is None or state.contract.hash != contract.hash):
        _refuse_verified_elsewhere(services, contract)
    if state is None:
        return
    if force:
        _require_room(services, contract, state)
        return
    if state.verified and state.contract.hash == contract.hash:
        on_top = _there_already(services, contract, tuple(contract.tasks)) is None
        raise Refusal(
            "phase.verified",
            f"Phase {contract.phase} is verified already.",
            hint=f"idumb rollback {contract.phase} --to start takes its work back, then idumb resume {contract.phase}."
            + _on_top(services, contract, tuple(contract.tasks)),
            details={
                "what": f"Run phase {contract.phase} again",
                "why": f"run {state.number} of this very contract is verified",
                "evidence": [f"contract {contract.hash}"],
                "choices": next_actions.rows(next_actions.of_verified(contract.phase, on_top=on_top)),
            },
        )
    _refuse_changed_work(services, contract, state)


def _refuse_verified_elsewhere(services: Services, contract: Contract) -> None:
    """In a clone no run is known, but HEAD's report says that somebody verified this very contract."""
    told = outside_work.verified(services, contract)
    if told is None:
        return
    made = _there_already(services, contract, tuple(contract.tasks))
    forced = f" idumb execute-phase {contract.phase} --force runs it again on top of what is there."
    raise Refusal(
        "phase.verified",
        f"Phase {contract.phase} is verified already: {told['path']} of HEAD says so of this very contract. No run of"
        " it is known in this repository, so it was verified elsewhere.",
        hint=f"git log -- {told['path']} shows who committed the report.{forced if made is None else ''}",
        details={
            "what": f"Run phase {contract.phase} again",
            "why": f"{told['path']} of HEAD says that this very contract was verified",
            "evidence": [f"contract {contract.hash}", f"verified {told['created']}"],
            "choices": next_actions.rows(
                next_actions.of_verified_elsewhere(contract.phase, told["path"], on_top=made is None)
            ),
        },
    )


def _on_top(services: Services, contract: Contract, tasks: Sequence[str]) -> str:
    """What `--force` does, as far as it can succeed."""
    forced = f" idumb execute-phase {contract.phase} --force"
    made = _there_already(services, contract, tasks)
    if made is None:
        return f"{forced} runs it again on top of what is there"
    return f"{forced} without that fails: {made} is to be created, and it is there"


def _require_room(services: Services, contract: Contract, state: RunState) -> None:
    """A new run would hide from a rollback what the one before created, so it does not begin where it must fail."""
    kept = () if state.verified else carried_tasks.carried(contract, state)
    done = [t for t in contract.order if t not in kept and t in state.tasks and state.tasks[t].status in outcome.DONE]
    made = _there_already(services, contract, done)
    if made is not None:
        raise Refusal(
            "phase.created",
            f"Phase {contract.phase} is to create {made}, and its run {state.number} did so already;"
            " on top of that it cannot succeed.",
            hint=f"idumb rollback {contract.phase} --to start takes it back first, then"
            f" idumb execute-phase {contract.phase} --force",
            details={"phase": contract.phase},
        )


def _there_already(services: Services, contract: Contract, tasks: Sequence[str]) -> str | None:
    """A file that cannot be created again, unless a task deletes it before."""
    every = [c for task in contract.tasks.values() for c in ledger.written_claims(task.files or ())]
    gone = {c.path for c in every if c.verb == "delete"}
    made = [c.path for t in tasks for c in ledger.written_claims(contract.tasks[t].files or ()) if c.verb == "create"]
    return next((path for path in made if path not in gone and services.reports.exists(path)), None)


def _refuse_changed_work(services: Services, contract: Contract, state: RunState) -> None:
    """Work that is done and would be made again on top of itself is taken back first, or forced."""
    again = carried_tasks.done_but_changed(contract, state)
    if not again:
        return
    raise Refusal(
        "plan.done-changed",
        f"{listing.listed(again)} of phase {contract.phase} is done, but the plan changed what it says or needs;"
        " its work is still in the files.",
        hint=f"idumb rollback {contract.phase} --to {carried_tasks.before(state, again[0])} takes it back first."
        + _on_top(services, contract, again),
        details={"phase": contract.phase, "to": carried_tasks.before(state, again[0]), "tasks": list(again)},
    )


def start(services: Services, journal: Journal, contract: Contract, request: Request) -> None:
    """Snapshot the base, keep the plans' bytes, begin the run, carry over what is done and unchanged.

    What unfinished tasks of the run before left is taken back: this run makes them anew.
    """
    before = run_lookup.latest_run(services, contract.phase)
    number = services.runs.last_number(contract.phase) + 1
    head = services.history.head()
    run = run_id(contract.hash, head.commit, number, services.worktree)
    base = services.trees.snapshot(run_ref(services, run, "base"), f"before run {number} of phase {contract.phase}")
    for words in task_base.not_saved(services.trees.left_out()):
        services.reporter.note(words)
    same_branch = before is not None and before.branch == head.branch
    put_back = task_base.put_back_unfinished(services, contract, before) if before and same_branch else ()
    sources = contract_lock.sources(services, contract)
    blobs = {path.rsplit("/", 1)[-1]: services.trees.store(data) for path, data in sources}
    services.trees.keep_blobs(run_ref(services, run, "plans"), blobs, f"plans of run {number}")
    digests = {task: contracts.task_digest(contract.tasks[task]) for task in contract.order}
    started = journal.event(
        "run.started",
        phase=contract.phase,
        folder=contract.folder,
        number=number,
        contract_hash=contract.hash,
        plans=[[p.path, p.sha256] for p in contract.plans],
        mode=request.mode or contract.mode,
        approval=approvals.newest_nonce(services, contract),
        policy=COMMIT_NONE if request.rehearsal else services.settings.git.commit,
        base_commit=head.commit,
        base_tree=base.tree,
        base_snapshot=base.commit,
        branch=head.branch,
        tasks=[[task, digests[task]] for task in contract.order],
        workspace=request.workspace or _workspace(services, request),
        put_back=[{"task": p.task, "paths": list(p.paths)} for p in put_back],
        guarded=dict(services.history.state().guarded),
    )
    for p in put_back:
        services.reporter.note(
            f"{p.task} was not finished by run {number - 1}; taken back: {listing.listed(p.paths)}"
            f" (kept: git show {kept_at(base.ref, p.paths[0])})"
        )
    events = [_for_run(started, run)]
    if request.force and before is not None and before.verified:
        events.append(_for_run(journal.event("phase.forced", phase=contract.phase), run))
    elif before is not None:
        events += [_for_run(e, run) for e in carried_tasks.events(journal, contract, before)]
    journal.write(*events)


def _workspace(services: Services, request: Request) -> str:
    usual = services.settings.run.workspace
    return usual if request.rehearsal else builder_commits.workspace_of(services.settings.git.commit, usual)


def _for_run(event: NewEvent, run: str) -> NewEvent:
    return dataclasses.replace(event, run=run)


def carry_out(services: Services, journal: Journal, contract: Contract, request: Request) -> Result:
    """Recover, run the tasks, write the reports, verify; whatever happens, the next command is known."""
    return conclude(services, journal, contract, request, at_work(services, journal, contract, request, _run_all))


def at_work(
    services: Services, journal: Journal, contract: Contract, request: Request, work: Callable[[Bench], T]
) -> T:
    """Do something with a run's tasks; what stops it is recorded, with the next command, before it is passed on."""
    bench = open_run.bench(
        services,
        journal,
        contract,
        on_deviation=request.on_deviation,
        max_attempts=request.max_attempts,
        workspace=request.workspace,
        deterministic=request.deterministic,
    )
    titles = {t: contract.tasks[t].title for t in contract.order}
    services.reporter.begin(titles, schedule.statuses(contract, journal.state))
    try:
        return work(bench)
    except Interrupted as interrupted:
        by = "cancel" if services.owner.asked() else "signal"
        reason = run_lookup.why_stopped(services, interrupted)
        journal.write(journal.event("run.interrupted", reason=reason, by=by))
        projections.write_progress(services, contract, journal.state)
        interrupted.hint = next_actions.command(journal.state)
        interrupted.details = failure_report.of_interruption(services, journal.state, contract, reason)
        raise
    except (Refusal, WorkFailed) as refusal:
        services.owner.guard()
        journal.write(journal.event("run.halted", reason=refusal.message))
        projections.write_progress(services, contract, journal.state)
        said = {
            "phase": contract.phase,
            **failure_report.of_refusal(services, journal.state, contract, refusal.message),
        }
        if isinstance(refusal, WorkFailed):
            said = {**failure_report.of_run(services, journal.state, contract, refusal.message), **said}
        refusal.details = {**said, **refusal.details}
        raise
    finally:
        projections.waiting_checkpoints(bench)
        if schedule.settled(schedule.statuses(contract, journal.state)):
            bench.agents.forget()
        abandoned_clones.close(bench)


def ready(bench: Bench) -> None:
    """What was left half done is finished or taken back, answers are taken up, and all that the run needs is there."""
    recovery.recover(bench)
    recovery.resolve_waiting(bench)
    runner.require_agents(bench)
    runner.require_setup(bench)


def _run_all(bench: Bench) -> runner.Ending:
    ready(bench)
    for task in (bench.contract.tasks[t] for t in bench.contract.order):
        if bench.journal.state.tasks[task.id].status in schedule.RUNNABLE:
            task_base.refuse_foreign_changes(bench, task, ahead=True)
    environment_lock.lock_in(bench)
    return runner.run_tasks(bench)


def conclude(
    services: Services, journal: Journal, contract: Contract, request: Request, ending: runner.Ending
) -> Result:
    contract = plan_answers.append(services, journal, contract)
    shown = schedule.statuses(contract, journal.state)
    done = schedule.settled(shown)
    if ending.kind == "done" and blocked_tasks.is_stuck(shown):
        ending = dataclasses.replace(
            ending, words=blocked_tasks.words(blocked_tasks.groups(contract, journal.state, shown))
        )
    kinds = {"done": "run.completed" if done else "run.failed", "paused": "run.paused"}
    workspace = final_state.at_end(services, journal.state, contract) if done else final_state.Workspace()
    said = {**ending.said, **({"workspace": workspace.as_dict()} if done else {})}
    journal.write(journal.event(kinds.get(ending.kind, "run.halted"), reason=ending.words, **said))
    reports = projections.ending(services, contract, journal.state)
    verification = None
    if done and request.verify:
        _require_word(services, journal, contract, reports)
        verification = verify_work.judge(services, journal, contract, asks=not request.rehearsal)
        contract = plan_answers.append(services, journal, contract)
        reports = (*reports, verify_work.write_report(services, contract, verification))
        projections.ending(services, contract, journal.state)
    warnings = (
        *projections.record_reports(services, journal, reports),
        *verify_work.unmet(verification),
        *opinions.silent(verification),
    )
    unproven = () if verification is not None else workspace.wrong
    warnings = (*failure_report.tolerated(journal.state, contract), *unproven, *workspace.words(), *warnings)
    return _result(services, journal.state, contract, ending, shown, verification, warnings)


def _require_word(services: Services, journal: Journal, contract: Contract, reports: tuple[str, ...]) -> None:
    """The tasks are done and stay so, whatever became of the approval; what judges them starts only under one."""
    try:
        if STRICT in (contract.mode, journal.state.mode):
            approvals.require(services, contract, base=journal.state.base.commit)
    except Refusal:
        projections.record_reports(services, journal, reports)
        raise


def finish_reports(services: Services, owned: operation.Owned, contract: Contract, state: RunState) -> None:
    """Write and commit the reports of a completed run that was ended before it came to that."""
    written = services.log.events(run=state.id, kind="reports.committed", newest_first=True, limit=1)
    judged = services.log.events(run=state.id, kind="verification.recorded", newest_first=True, limit=1)
    if max((e.seq for e in written), default=0) > max((e.seq for e in judged), default=0):
        return
    paths = [projection_paths.report_path(contract.folder, what) for what in ("SUMMARY", "VERIFICATION")]
    if all(services.reports.exists(path) for path in paths) and not services.history.uncommitted(paths):
        return
    reports = projections.ending(services, contract, state)
    if state.verification is not None:
        reports = (*reports, verify_work.write_report(services, contract, state.verification))
    projections.record_reports(services, owned.journal(state), reports)


_STANDS = {"waiting": "waiting", "paused": "paused", runner.EDITOR: "waiting"}


def _result(
    services: Services,
    state: RunState,
    contract: Contract,
    ending: runner.Ending,
    shown: Mapping[str, str],
    verification: Mapping[str, Any] | None,
    warnings: tuple[str, ...],
) -> Result:
    counts = {s: sum(1 for v in shown.values() if v == s) for s in dict.fromkeys(shown.values())}
    done = schedule.settled(shown)
    word = "complete" if done else _STANDS.get(ending.kind, "partial")
    if not done and not any(s in outcome.DONE for s in shown.values()) and word == "partial":
        word = "failed"
    asked = next_steps.pending(state)
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "session": state.session,
        "outcome": word,
        "reason": ending.words,
        "counts": counts,
        "total": len(shown),
        "contract_hash": contract.hash,
        "tasks": [next_steps.task_row(state, contract, t, shown) for t in contract.order],
        "summary": projection_paths.report_path(contract.folder, "SUMMARY"),
        "files_modified": len({p for t in state.attempted for p in state.tasks[t].work.touched}),
        "lock_in": None if state.contract.lock_in is None else dict(state.contract.lock_in),
        "verification": verification,
        "untracked": contract_lock.untracked(services, (p.path for p in contract.plans)),
        "decisions": asked,
        "blocked": blocked_tasks.groups(contract, state, shown),
        "next": next_steps.next_commands(
            contract, state, shown, ending.kind, verification, asked=bool(asked), first=ending.task
        ),
    }
    if word == "complete":
        ended = _complete(data, verification, warnings, contract)
        if verification is None or ended.failure is None:
            return ended
        return dataclasses.replace(
            ended, details=failure_report.of_verification(services, state, contract, verification)
        )
    failed = next((t for t, s in shown.items() if s in (outcome.FAILED, outcome.RUNNING)), ending.task)
    if ending.task is not None and shown.get(ending.task) == outcome.FAILED:
        failed = ending.task  # the one that ended the run, which is not the first of those that failed
    if ending.kind == runner.EDITOR:
        failed, data["next"] = None, [f"idumb start {ending.task}", *data["next"]]
    found = failure_report.structured(services, state, contract, failed)
    back = [c["command"] for c in (found or {}).get("choices", ()) if c["id"] == "put-back" and c["command"]]
    if back:  # until the plan is as it was, neither a retry nor a person's word about the task is taken
        needing = ("idumb resume", "idumb accept", "idumb skip")
        data["next"] = [*(c for c in data["next"] if not c.startswith(needing)), *back]
    # Where git refused the commit, the task itself has no reason.
    data["failure"] = found and {**found, "error": found["error"] or ending.words}
    code = errors.EXIT_WAITING if word in {"waiting", "paused"} else errors.EXIT_FAILED
    if word == "paused":
        data["choices"] = next_actions.rows(next_actions.of_paused(state))
    words = ending.words or f"{counts.get(outcome.FAILED, 0)} failed, {counts.get(outcome.BLOCKED, 0)} blocked"
    slug = {"waiting": "run.waiting", "commit-refused": "git.commit-refused", "halted": "run.halted"}
    slug |= {"paused": "run.paused", runner.EDITOR: "run.in-editor"}
    elsewhere = ending.kind == "waiting" and not asked
    hint = f"Write the answer, then {data['next'][0]}" if elsewhere else data["next"][0]
    return Result(
        data,
        code,
        warnings,
        (slug.get(ending.kind, "run.failed"), f"Phase {contract.phase} is not complete: {words}", hint),
        {
            **(
                data["failure"]
                or failure_report.of_run(services, state, contract, words, waits=code == errors.EXIT_WAITING)
            ),
            **({"choices": data["choices"]} if "choices" in data else {}),
            **({"decisions": [d["id"] for d in asked]} if asked else {}),
        },
    )


def _complete(
    data: dict[str, Any], verification: Mapping[str, Any] | None, warnings: tuple[str, ...], contract: Contract
) -> Result:
    if verification is None or verification["status"] == "passed":
        return Result(data, errors.EXIT_DONE, warnings)
    waiting = verification["status"] == "waiting"
    said = f"verify-work says {verification['status']}: {verification['reason']}"
    words = f"All tasks of phase {contract.phase} are done, but {said}"
    return Result(
        data,
        errors.EXIT_WAITING if waiting else errors.EXIT_FAILED,
        warnings,
        (f"verification.{verification['status']}", words, data["next"][0]),
    )
