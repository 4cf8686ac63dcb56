"""What a run must satisfy before it starts or continues. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app.attempt import builder_commits
from idumb.app.contract import (
    carried_tasks,
    contract_versions,
    loading,
)
from idumb.app.core import next_actions, run_lookup
from idumb.app.core.services import Services
from idumb.app.review import ask_consent
from idumb.app.running import outside_work, run_request
from idumb.app.running.run_request import Request
from idumb.app.worktree import preconditions
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger
from idumb.domain.runs.run import COMPLETED, RunState

_IN_EDITOR = frozenset({"start", "submit"})


def admit(services: Services, request: Request) -> Contract:
    """Return the contract once every precondition holds and you agreed to it; Refusal otherwise. Changes nothing."""
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
    if run_request.workspace(services, request) == builder_commits.CLONE and not request.rehearsal:
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


def unfinished_run(services: Services, contract: Contract, *, force: bool) -> RunState | None:
    """The phase's newest run, if it is of this contract and has something left to do: at least to be verified."""
    state = run_lookup.latest_run(services, contract.phase)
    known = contract_versions.foreseen(state, contract.hash) if state is not None else None
    if known is None or known.contract.hash != contract.hash:
        return None
    ended = known.state == COMPLETED and known.restoring is None
    return None if ended and (known.verified or force) else state


def require_unverified(services: Services, contract: Contract, *, force: bool) -> None:
    state = run_lookup.latest_run(services, contract.phase)
    state = contract_versions.foreseen(state, contract.hash) if state is not None else None
    if not force and (state is None or state.contract.hash != contract.hash):
        _require_unverified_elsewhere(services, contract)
    if state is None:
        return
    if force:
        _require_creatable(services, contract, state)
        return
    if state.verified and state.contract.hash == contract.hash:
        on_top = _existing_target(services, contract, tuple(contract.tasks)) is None
        raise Refusal(
            "phase.verified",
            f"Phase {contract.phase} is verified already.",
            hint=f"idumb rollback {contract.phase} --to start takes its work back, then idumb resume {contract.phase}."
            + _force_hint(services, contract, tuple(contract.tasks)),
            details={
                "what": f"Run phase {contract.phase} again",
                "why": f"run {state.number} of this very contract is verified",
                "evidence": [f"contract {contract.hash}"],
                "choices": next_actions.rows(next_actions.of_verified(contract.phase, on_top=on_top)),
            },
        )
    _require_unchanged_work(services, contract, state)


def _require_unverified_elsewhere(services: Services, contract: Contract) -> None:
    """In a clone no run is known, but HEAD's report says that somebody verified this very contract."""
    told = outside_work.verified_report(services, contract)
    if told is None:
        return
    made = _existing_target(services, contract, tuple(contract.tasks))
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


def _force_hint(services: Services, contract: Contract, tasks: Sequence[str]) -> str:
    """What `--force` does, as far as it can succeed."""
    forced = f" idumb execute-phase {contract.phase} --force"
    made = _existing_target(services, contract, tasks)
    if made is None:
        return f"{forced} runs it again on top of what is there"
    return f"{forced} without that fails: {made} is to be created, and it is there"


def _require_creatable(services: Services, contract: Contract, state: RunState) -> None:
    """A new run would hide from a rollback what the one before created, so it does not begin where it must fail."""
    kept = () if state.verified else carried_tasks.carried(contract, state)
    done = [t for t in contract.order if t not in kept and t in state.tasks and state.tasks[t].status in outcome.DONE]
    made = _existing_target(services, contract, done)
    if made is not None:
        raise Refusal(
            "phase.created",
            f"Phase {contract.phase} is to create {made}, and its run {state.number} did so already;"
            " on top of that it cannot succeed.",
            hint=f"idumb rollback {contract.phase} --to start takes it back first, then"
            f" idumb execute-phase {contract.phase} --force",
            details={"phase": contract.phase},
        )


def _existing_target(services: Services, contract: Contract, tasks: Sequence[str]) -> str | None:
    """A file that cannot be created again, unless a task deletes it before."""
    every = [c for task in contract.tasks.values() for c in ledger.written_claims(task.files or ())]
    gone = {c.path for c in every if c.verb == "delete"}
    made = [c.path for t in tasks for c in ledger.written_claims(contract.tasks[t].files or ()) if c.verb == "create"]
    return next((path for path in made if path not in gone and services.reports.exists(path)), None)


def _require_unchanged_work(services: Services, contract: Contract, state: RunState) -> None:
    """Work that is done and would be made again on top of itself is taken back first, or forced."""
    again = carried_tasks.done_but_changed(contract, state)
    if not again:
        return
    raise Refusal(
        "plan.done-changed",
        f"{wording.listed(again)} of phase {contract.phase} is done, but the plan changed what it says or needs;"
        " its work is still in the files.",
        hint=f"idumb rollback {contract.phase} --to {carried_tasks.before(state, again[0])} takes it back first."
        + _force_hint(services, contract, again),
        details={"phase": contract.phase, "to": carried_tasks.before(state, again[0]), "tasks": list(again)},
    )
