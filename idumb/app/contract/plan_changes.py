"""What changed in the plans of a phase since they were approved or locked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from idumb.app.contract import contract_versions, loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services, plans_ref
from idumb.app.worktree import preconditions
from idumb.domain import plan_diff
from idumb.domain.consent.grant import APPROVE, PLANS, Grant
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plan_diff import PlanDiff
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass

RUN = "run"
APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class ChangesSinceLock:
    """`contract` as it was locked, and `diff` to the present plans."""

    state: RunState
    contract: Contract
    diff: PlanDiff


def show(services: Services, phase: str) -> Result:
    """`idumb check-plan N --diff`: compare the plans with the newest approval or lock of a run. Reads only."""
    preconditions.require_initialised(services)
    now = loading.require_contract(services, phase)
    state = run_lookup.latest_run(services, now.phase)
    approval = _approval(services, now.phase, state, now.hash)
    if approval is not None:
        return _result(now, _approval_row(approval), *_since_approval(services, now, approval, state))
    state = run_lookup.require_run(services, now.phase)
    verified = contract_versions.is_verified(state, now)
    return _result(now, _lock_row(services, state), since_lock(services, state, now).diff, (), verified=verified)


def _result(
    now: Contract, held: dict[str, Any], diff: PlanDiff, unknown: tuple[str, ...], *, verified: bool = False
) -> Result:
    same = now.hash == held["contract_hash"]
    uncompared = (
        f"{path}: it changed, but idumb has no copy of the approved version to compare with" for path in unknown
    )
    lines = (*plan_diff.lines(diff), *uncompared)
    after = {RUN: f"idumb amend {now.phase} --from-file", APPROVAL: f"idumb approve {now.phase}"}[held["what"]]
    data: dict[str, Any] = {
        "phase": now.phase,
        "since": held,
        "contract_hash": now.hash,
        "same": same,
        **plan_diff.as_dict(diff),
        "unknown": list(unknown),
        "lines": list(lines),
        "verified": same and verified,
        "next": [f"idumb resume {now.phase}" if held["what"] == RUN else f"idumb execute-phase {now.phase}"]
        if same
        else [after],
    }
    return Result(data)


def _lock_row(services: Services, state: RunState) -> dict[str, Any]:
    return {
        "what": RUN,
        "run": state.id,
        "number": state.number,
        "version": state.contract.version,
        "contract_hash": state.contract.hash,
        "ref": plans_ref(services, state.id, state.contract.version),
        "by": None,
        "at": _locked_at(state),
    }


def _approval_row(approval: Grant) -> dict[str, Any]:
    nothing = dict.fromkeys(("run", "number", "version", "ref"))
    held = {"contract_hash": approval.contract_hash, "by": approval.by, "at": approval.at}
    return {"what": APPROVAL, **nothing, **held}


def _locked_at(state: RunState) -> str:
    return str(state.contract.amendments[-1]["at"]) if state.contract.amendments else state.started_at


def _approval(services: Services, phase: str, state: RunState | None, now_hash: str) -> Grant | None:
    """The newest valid approval, unless the lock of a run is newer or the run must first take over these plans."""
    newest = next((g for g in services.consent.grants(phase) if g.how == APPROVE and g.revoked is None), None)
    if newest is None or (state is not None and _locked_at(state) > newest.at):
        return None
    return None if state is not None and newest.contract_hash == now_hash else newest


def _since_approval(
    services: Services, now: Contract, approval: Grant, state: RunState | None
) -> tuple[PlanDiff, tuple[str, ...]]:
    """(what changed, paths of plans without a copy to compare with). An approval binds hashes, not bytes."""
    hashes: dict[str, str] = dict(approval.parts[PLANS].value)
    approved = {
        path: data
        for path, data in _known_plans(services, now, state)
        if hashlib.sha256(data).hexdigest() == hashes.get(path)
    }
    missing = tuple(path for path in hashes if path not in approved)
    sources = sorted(approved.items())
    loaded = loading.load_sources(services, now.phase, now.folder, sources) if sources else None
    if missing or loaded is None or loaded.contract is None:
        return PlanDiff(), missing or tuple(hashes)
    configuration = loaded.contract.hash != approval.contract_hash
    return plan_diff.compare(loaded.contract, now, configuration=configuration), ()


def _known_plans(services: Services, now: Contract, state: RunState | None) -> Iterator[tuple[str, bytes]]:
    """The plans in the working tree, in HEAD, and as the newest run locked them."""
    yield from services.plans.plans(now.folder)
    head = services.history.head_tree()
    for path in [plan.path for plan in now.plans] if head is not None else ():
        entry = services.trees.entry(head or "", path)
        if entry is not None:
            yield path, services.trees.read(entry.oid)
    for version in range(1, state.contract.version + 1) if state is not None else ():
        kept = services.trees.kept_blobs(plans_ref(services, state.id if state else "", version))
        yield from ((f"{now.folder}/{name}", services.trees.read(blob)) for name, blob in kept.items())


def since_lock(services: Services, state: RunState, now: Contract) -> ChangesSinceLock:
    """Compare the plans that the run last locked with `now`. Refuses if the locked plans are lost."""
    loaded = loading.load_locked(services, state, now.folder)
    if loaded.contract is None:
        raise Refusal(
            "contract.not-kept",
            f"The locked plans of run {state.number} of phase {state.phase} are no longer in the repository.",
            hint="idumb doctor",
        )
    configuration = loaded.contract.hash != state.contract.hash
    return ChangesSinceLock(
        state, loaded.contract, plan_diff.compare(loaded.contract, now, configuration=configuration)
    )
