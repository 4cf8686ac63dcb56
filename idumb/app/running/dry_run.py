"""Dry run: rehearse a run in a temporary copy of the working tree, and report what it would change.

It uses your plans, configuration and consent. Snapshots, events and reports belong to the copy and go with it.
Tasks for people, and tasks with effects outside their files, are not rehearsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.attempt import record
from idumb.app.contract import changed_contract, run_lock
from idumb.app.core import actions, questions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Result, Services, same_command
from idumb.app.running import admission, run_lifecycle
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import errors, outcome, paths, wording
from idumb.domain.action import SECRET, STOPPED, UNDECLARED, Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import REVERSIBLE
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_TASK

# A run stops at these questions, which no plan foresees.
_UNFORESEEN = frozenset({UNDECLARED, STOPPED, SECRET})
_VERBS = {(False, True): "created", (True, False): "deleted", (True, True): "modified"}


class _DryRun(Struct, frozen=True):
    """How the rehearsal ended.

    `before` is the user's tree, `after` the copy's. `held` are the tasks that were not rehearsed, with reasons;
    `earlier` are those that the user's newest run has done or skipped.
    """

    services: Services
    contract: Contract
    state: RunState
    result: Result
    before: str
    after: str
    held: Mapping[str, str]
    earlier: frozenset[str]


def rehearse(services: Services, request: RunRequest) -> Result:
    """Run a phase in a temporary copy; return the predicted diff and the commands that made it.

    A rehearsal runs commands, so it needs the same consent as a run, with the same refusals.
    """
    services.forget_consent()
    contract, newest = _prepared(services, request)
    run = Action.of(request.command, phase_ids.step_plan_path(contract.phase) or contract.phase)
    named_paths = sorted({path for task in contract.tasks.values() for path in ledger.named_paths(task.files)})
    with services.open_dry_run(named_paths) as copy:  # if there is no place for it, another dry run would fail too
        try:
            ended = _run(copy, contract, newest, request, named_paths)
            return _answer(ended, services.settings.git.commit, run)
        except IdumbError as problem:
            problem.step = same_command(services)
            words = "run the dry run again", "nothing of it remains that could continue"
            problem.details["choices"] = actions.choice_rows((Choice("again", *words, same_command(services)),))
            raise


def _prepared(services: Services, request: RunRequest) -> tuple[Contract, RunState | None]:
    """Return the contract and the user's newest run of the phase; Refusal if a run could neither start nor continue."""
    contract = admission.admit(services, request)
    holder = services.owner.holder()
    if holder is not None:  # the copy would be of a tree that changes
        raise Refusal(
            "lock.held",
            f"Process {holder['pid']} ({holder['command']}) is using this working tree.",
            hint=Action("status"),
            details=preconditions.shown_owner(holder),
        )
    newest = run_lookup.latest_run(services, contract.phase)
    unfinished = admission.unfinished_run(services, contract, force=request.force)
    if unfinished is None:
        admission.require_unverified(services, contract, force=request.force)
    else:
        preconditions.require_settled(unfinished)
        run_lock.require_same_environment(services, unfinished, contract, request)
    return contract, newest


def _run(
    copy: Services, contract: Contract, newest: RunState | None, request: RunRequest, also: Sequence[str]
) -> _DryRun:
    """Rehearse the run in the copy."""
    with operation.recorded(copy, request.command) as journal:
        before = copy.trees.scan(also)
        preconditions.begin_branch(copy, contract, request.branch)
        run_lifecycle.start_run(copy, journal, contract, request)
        earlier = _carry_over(journal, contract, None if request.force else newest)
        held = _skip_unrehearsable(journal, contract, earlier)
        # A phase with skipped tasks cannot be verified as a whole.
        rehearsed = replace(request, verify=request.verify and not held)
        result = run_lifecycle.run_to_end(copy, journal, contract, rehearsed)
        after = copy.trees.scan(also)
    return _DryRun(copy, contract, journal.state, result, before, after, held, earlier)


def _carry_over(journal: Journal, contract: Contract, newest: RunState | None) -> frozenset[str]:
    """Record what the user's newest run has already done or skipped; return those tasks."""
    if newest is None:
        return frozenset()
    events = changed_contract.events_of_carried(journal, contract, newest)
    if newest.contract.hash == contract.hash:
        skipped = (task for task in newest.tasks.values() if task.status == outcome.SKIPPED)
        events += [journal.event("task.skipped", task.id, reason=task.reason) for task in skipped]
    journal.write(*events)
    return frozenset(event.task for event in events if event.task is not None)


def _skip_unrehearsable(journal: Journal, contract: Contract, earlier: frozenset[str]) -> dict[str, str]:
    """Skip the tasks that cannot be rehearsed; return each with the reason."""
    held: dict[str, str] = {}
    for task in (contract.tasks[id] for id in contract.order if id not in earlier):
        if task.is_human:
            held[task.id] = "a person does it"
        elif task.rollback.kind != REVERSIBLE:
            held[task.id] = f"its effects are not in files alone ({task.rollback.kind})"
    journal.write(*(journal.event("task.skipped", t, reason=f"not rehearsed: {why}") for t, why in held.items()))
    return held


def _answer(ended: _DryRun, policy: str, run: Action) -> Result:
    ran, phase = ended.result.data, ended.contract.phase
    data: dict[str, Any] = {
        "run": None,
        "phase": phase,
        "outcome": ran["outcome"],
        "reason": ran["reason"],
        "contract_hash": ended.contract.hash,
        "verification": ran["verification"],
        "dry_run": _predicted(ended, policy),
        "next": [run],
    }
    record = ran["verification"]
    # A pending answer is not a failure of the run.
    verified = record is None or record["status"] in ("passed", "waiting") or record["decision"] is not None
    asked = [question for question in ran["decisions"] if question["subject"] != questions.EXHAUSTED]
    failed = [id for id, task in ended.state.tasks.items() if task.status == outcome.FAILED]
    unforeseen = next((question for question in asked if question["kind"] in _UNFORESEEN), None)
    waits = ran["outcome"] == "waiting" and unforeseen is None and not failed
    if waits or (ran["outcome"] == "complete" and verified):
        return Result(data, errors.EXIT_DONE, ended.result.warnings)
    # Its questions are gone, with the copy.
    details = {**{k: v for k, v in ended.result.details.items() if k != "decisions"}, "run": None}
    correct = Choice("correct", "correct the plan", "nothing was recorded", Action.of("check-plan", phase))
    details["choices"] = actions.choice_rows((correct,))
    data["next"] = [Action.of("check-plan", phase)]
    exit_code, again = errors.EXIT_FAILED, f"Correct the plan, then {run} --dry-run"
    why = ended.result.failure[1] if ended.result.failure else ran["reason"]
    why = f"Failed: {wording.listed(failed)}." if failed else why
    failure = ("dry-run.failed", f"A run would fail. {why}", again)
    if unforeseen is not None:
        exit_code = errors.EXIT_WAITING
        failure = ("dry-run.waiting", f"A run would stop and ask: {unforeseen['what']}.", again)
        details |= {name: unforeseen[name] for name in ("what", "why", "evidence")}
    return Result(data, exit_code, ended.result.warnings, failure, details)


def _predicted(ended: _DryRun, policy: str) -> dict[str, Any]:
    """Return `data.dry_run`: the tasks, the diff, the commits that a run would make in order, and what was skipped."""
    trees, state, contract = ended.services.trees, ended.state, ended.contract
    changes = [c for c in trees.changes(ended.before, ended.after) if not paths.matches_any(c.path, paths.OWN_FILES)]
    counts = trees.line_counts(ended.before, ended.after)
    changed = [c.path for c in changes]
    commits = [
        id
        for id, task in ((id, contract.tasks[id]) for id in state.attempted if policy == COMMIT_TASK)
        if state.tasks[id].status == outcome.COMPLETED
        and not task.is_human
        and (task.flow is None or state.tasks[id].work.touched)
    ]
    statuses = schedule.statuses(contract, state)
    return {
        "tasks": [_task(ended, statuses, task) for task in contract.order],
        "files": [
            {
                "path": change.path,
                "change": _VERBS[(change.old is not None, change.new is not None)],
                **dict(zip(("added", "removed"), counts.get(change.path, (None, None)), strict=True)),
            }
            for change in changes
        ],
        "diff": trees.diff(ended.before, ended.after, changed) if changed else "",
        "would_commit": [
            {
                "task": task,
                "subject": record.words_of(ended.services.settings, contract, task, {}).partition("\n")[0],
                "files": list(state.tasks[task].work.touched),
            }
            for task in commits
        ],
        "not_rehearsed": [{"task": task, "why": why} for task, why in ended.held.items()],
    }


def _task(ended: _DryRun, statuses: Mapping[str, str], task: str) -> dict[str, Any]:
    why = ended.held.get(task) or ended.state.tasks[task].reason
    if statuses[task] == outcome.BLOCKED:
        why = f"needs {', '.join(schedule.blockers(ended.contract, statuses, task))}"
    return {
        "id": task,
        "title": ended.contract.tasks[task].title,
        "status": "done already" if task in ended.earlier else statuses[task],
        "rehearsed": task in ended.state.attempted,
        "why": why,
    }
