"""What must hold before a run starts or continues. Changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from idumb.app.contract import changed_contract, contract_versions, loading, plan_checks
from idumb.app.core import actions, run_lookup
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Services, from_start, same_command
from idumb.app.review import ask_consent
from idumb.app.verify import recorded_elsewhere
from idumb.app.worktree import preconditions
from idumb.domain import outcome, wording
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger
from idumb.domain.runs.run import COMPLETED, RunState


def of_run(request: RunRequest, state: RunState) -> RunRequest:
    """Return the request to continue a run: a strict run stays strict."""
    return replace(request, mode=STRICT) if state.mode == STRICT else request


def admit(services: Services, request: RunRequest, startable: Contract | None = None) -> Contract:
    """Return the contract once every precondition holds and you agreed to it; Refusal otherwise. Starts nothing.

    `startable` is its `startable_contract`, if the caller has looked at that.
    """
    contract = startable or startable_contract(services, request)
    if request.mode is not None and request.mode != STRICT and contract.mode == STRICT:
        raise Refusal(
            "mode.strict-plan",
            "The plan sets `mode: strict`; --mode guided cannot override it.",
            hint="Change the mode in the plan, or omit --mode",
            details={"phase": contract.phase},
        )
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None and contract_versions.is_run_of(state, contract):
        # Before a question that would be for nothing.
        changed_contract.require_not_dropped(state)
        if state.contract.hash != contract.hash:
            require_unverified(services, contract, force=request.force)
    run = unfinished_run(services, contract, force=request.force)
    if request.mode == STRICT and run is not None and run.mode != STRICT:
        words = f"Run {run.number} of phase {run.phase} began in guided mode; only a new run can be strict."
        raise Refusal("mode.guided-run", words, hint=Action.of("resume", run.phase))
    require_ready(services, contract, state, request)
    return contract


def startable_contract(services: Services, request: RunRequest) -> Contract:
    """Return the checked contract. An amendment that was killed after it had written the plan is finished first."""
    contract = plan_checks.startable_contract(services, loading.load_phase(services, request.phase))
    state = run_lookup.latest_run(services, contract.phase)
    if state is not None and not request.dry_run and contract_versions.was_agreed(services, state, contract):
        from idumb.app.review import amend  # it imports much, and a command is rarely killed there

        amend.amend(services, amend.Request(state.phase, from_file=True, yes=True), services.consent.person())
    return contract


def require_ready(
    services: Services, contract: Contract, state: RunState | None, request: RunRequest, *, runs: bool = True
) -> None:
    """Refuse unless programs can work here, nobody changed how git works, and you agreed to what runs, if it `runs`."""
    if not request.in_place and not request.dry_run:
        services.checkouts.require_place()
    preconditions.require_guarded_files(services, state, request.accept_git)
    preconditions.require_repository(services)
    if runs:
        ask_consent.ensure(services, contract, request)


def unfinished_run(services: Services, contract: Contract, *, force: bool) -> RunState | None:
    """Return the phase's newest run if it runs this contract and still has work left, at least its verification."""
    state = run_lookup.latest_run(services, contract.phase)
    if state is None or state.contract.hash != contract.hash:
        return None
    ended = state.state == COMPLETED and state.restoring is None
    return None if ended and (state.verified or force) else state


def require_unverified(services: Services, contract: Contract, *, force: bool) -> None:
    """Refuse a new run of a verified phase, or one that would repeat completed work on top of itself."""
    state = run_lookup.latest_run(services, contract.phase)
    if not force and (state is None or not contract_versions.is_run_of(state, contract)):
        _require_unverified_elsewhere(services, contract)
    if state is None:
        return
    if force:
        _require_creatable(services, contract, state)
        return
    if state.verified and contract_versions.is_run_of(state, contract):
        forced = _forced(services, contract, tuple(contract.tasks))
        back = f"first idumb rollback {contract.phase} --to start, then idumb resume {contract.phase}"
        why, facts = f"run {state.number} of this contract is verified", [f"contract {contract.hash}"]
        raise Refusal(
            "phase.verified",
            f"Phase {contract.phase} is already verified.",
            hint=f"To run it again, {back}",
            details=actions.offer(f"Run phase {contract.phase} again", why, facts, _choices(contract.phase, forced)),
        )
    _require_unchanged_work(services, contract, state)


def _choices(phase: str, forced: Action | None, report: str | None = None) -> tuple[Choice, ...]:
    """Return what can be done about a verified phase. `forced` runs it again on top of its work, if that can succeed.

    With `report`, only that committed report says that it is verified: no run here could be rolled back.
    """
    means = "nothing is written or run; to roll back the work, revert its commits with git"
    log = shlex.join(["git", "log", "--", report or ""])
    first = actions.start_fresh(phase) if report is None else Choice("look", "see who verified it", means, log)
    again = ("force", "run it again on top of its work", "a new run of every task; the commits of the last run stay")
    leave = Choice("leave", "leave it as it is", "nothing changes", actions.NEXT)
    return (leave, first) if forced is None else (leave, first, Choice(*again, forced))


def _require_unverified_elsewhere(services: Services, contract: Contract) -> None:
    """Refuse if the log has no run, but a report in HEAD says that this contract was verified elsewhere."""
    report = recorded_elsewhere.verified_report(services, contract)
    if report is None:
        return
    forced, place = _forced(services, contract, tuple(contract.tasks)), from_start(services, report["path"])
    raise Refusal(
        "phase.verified",
        f"Phase {contract.phase} was already verified elsewhere: {report['path']} in HEAD says so for this contract,"
        " and this working tree has no run of it.",
        hint=f"git log -- {place} shows who committed the report",
        details=actions.offer(
            f"Run phase {contract.phase} again",
            f"{report['path']} in HEAD says that this contract was verified",
            [f"contract {contract.hash}", f"verified {report['created']}"],
            _choices(contract.phase, forced, place),
        ),
    )


def _forced(services: Services, contract: Contract, tasks: Sequence[str]) -> Action | None:
    """Return the command that runs it again on top of its work; None if it fails: a file exists that a task creates."""
    if _existing_target(services, contract, tasks) is not None:
        return None
    runs = services.typed[:1] in (("execute-phase",), ("execute",))
    return same_command(services, "--force") if runs else Action.of("execute-phase", contract.phase, "--force")


def _require_creatable(services: Services, contract: Contract, state: RunState) -> None:
    """Refuse a forced run that must fail because a file to create exists.

    The failed run would hide the file from a rollback of the run that created it.
    """
    carried = () if state.verified else changed_contract.carried_tasks(contract, state)
    repeated = (task for task in contract.order if task in state.tasks and task not in carried)
    done = [task for task in repeated if state.tasks[task].status in outcome.DONE]
    existing = _existing_target(services, contract, done)
    if existing is not None:
        raise Refusal(
            "phase.created",
            f"Phase {contract.phase} cannot run again on top of run {state.number}: it creates {existing}, which"
            " exists.",
            hint=f"First idumb rollback {contract.phase} --to start, then {same_command(services)}",
            details={"phase": contract.phase},
        )


def _existing_target(services: Services, contract: Contract, tasks: Sequence[str]) -> str | None:
    """Return an existing file that these tasks create and no task deletes; None if there is none."""
    claims = {id: ledger.written_claims(task.files or ()) for id, task in contract.tasks.items()}
    deleted = {claim.path for of_task in claims.values() for claim in of_task if claim.verb == "delete"}
    created = (claim.path for task in tasks for claim in claims[task] if claim.verb == "create")
    return next((path for path in created if path not in deleted and services.files.exists(path)), None)


def _require_unchanged_work(services: Services, contract: Contract, state: RunState) -> None:
    """Refuse if the plan changed completed tasks whose work is still in the files."""
    changed = changed_contract.done_but_changed(contract, state)
    if not changed:
        return
    target, forced = changed_contract.rollback_target(state, changed[0]), _forced(services, contract, changed)
    on_top = f"; {forced} runs it on top of that work" if forced else ""
    raise Refusal(
        "plan.done-changed",
        f"The plan of phase {contract.phase} changed {wording.listed(changed)} after completion, and the work is"
        " still in the files.",
        hint=f"Revert the work first: idumb rollback {contract.phase} --to {target}{on_top}",
        details={"phase": contract.phase, "to": target, "tasks": list(changed)},
    )
