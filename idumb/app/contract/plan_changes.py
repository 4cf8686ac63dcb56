"""What changed in a phase's plans since they were approved or locked, as tasks and fields."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services, plans_ref
from idumb.app.worktree import preconditions
from idumb.domain import plan_diff
from idumb.domain.consent.approval import Approval
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plan_diff import PlanDiff
from idumb.domain.runs.run import RunState

RUN = "run"
APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class Since:
    """What the plans are held against: `contract` as it was locked, `diff` to what they are now."""

    state: RunState
    contract: Contract
    diff: PlanDiff


def show(services: Services, phase: str) -> Result:
    """`idumb plan-diff N`: reads only. Held against the newest word there is: an approval, or the lock of a run."""
    preconditions.require_initialised(services)
    now = loading.require_contract(services, phase)
    state = run_lookup.latest_run(services, now.phase)
    approval = _approval(services, now.phase, state, now.hash)
    if approval is not None:
        return _result(now, _of_approval(approval), *_since_approval(services, now, approval, state))
    state = run_lookup.require_run(services, now.phase)
    return _result(now, _of_run(services, state), since(services, state, now).diff, ())


def _result(now: Contract, held: dict[str, Any], diff: PlanDiff, unknown: tuple[str, ...]) -> Result:
    same = now.hash == held["contract_hash"]
    lines = (*plan_diff.lines(diff), *(f"{path}: its approved bytes are kept nowhere, so only this is known: it changed"
                                       for path in unknown))  # fmt: skip
    on = {RUN: f"idumb amend {now.phase} --from-file", APPROVAL: f"idumb approve {now.phase}"}[held["what"]]
    data: dict[str, Any] = {
        "phase": now.phase,
        "since": held,
        "contract_hash": now.hash,
        "same": same,
        **plan_diff.as_dict(diff),
        "unknown": list(unknown),
        "lines": list(lines),
        "next": [f"idumb resume {now.phase}" if held["what"] == RUN else f"idumb execute-phase {now.phase}"]
        if same
        else [on],
    }
    return Result(data)


def _of_run(services: Services, state: RunState) -> dict[str, Any]:
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


def _of_approval(approval: Approval) -> dict[str, Any]:
    nothing = dict.fromkeys(("run", "number", "version", "ref"))
    held = {"contract_hash": approval.contract_hash, "by": approval.by, "at": approval.validated_at}
    return {"what": APPROVAL, **nothing, **held}


def _locked_at(state: RunState) -> str:
    return str(state.contract.amendments[-1]["at"]) if state.contract.amendments else state.started_at


def _approval(services: Services, phase: str, state: RunState | None, now_hash: str) -> Approval | None:
    """The newest approval that nobody took back: if no lock of a run is newer, and no run is to take over just that."""
    known = [kept.approval for kept in services.consent.approvals(phase) if kept.revoked is None]
    if not known or (state is not None and _locked_at(state) > known[0].validated_at):
        return None
    return None if state is not None and known[0].contract_hash == now_hash else known[0]


def _since_approval(
    services: Services, now: Contract, approval: Approval, state: RunState | None
) -> tuple[PlanDiff, tuple[str, ...]]:
    """(what changed, plans of which only that is known). An approval has hashes; the bytes are where they were."""
    bound = approval.bound.get("plans")
    hashes: dict[str, str] = dict(bound.value) if bound is not None else {}
    found = {path: data for path, data in _bytes(services, now, state) if _sha256(data) == hashes.get(path)}
    missing = tuple(path for path in hashes if path not in found)
    loaded = loading.of_sources(services, now.phase, now.folder, sorted(found.items())) if found else None
    if missing or loaded is None or loaded.contract is None:
        return PlanDiff(), missing or tuple(hashes)
    configuration = loaded.contract.hash != approval.contract_hash
    return plan_diff.compare(loaded.contract, now, configuration=configuration), ()


def _bytes(services: Services, now: Contract, state: RunState | None) -> Iterator[tuple[str, bytes]]:
    """Plans as they are, as HEAD has them, and as the newest run kept them."""
    yield from services.plans.plans(now.folder)
    head = services.history.head_tree()
    for path in [plan.path for plan in now.plans] if head is not None else ():
        entry = services.trees.entry(head or "", path)
        if entry is not None:
            yield path, services.trees.read(entry.oid)
    for version in range(1, state.contract.version + 1) if state is not None else ():
        kept = services.trees.kept_blobs(plans_ref(services, state.id if state else "", version))
        yield from ((f"{now.folder}/{name}", services.trees.read(blob)) for name, blob in kept.items())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def since(services: Services, state: RunState, now: Contract) -> Since:
    """The difference between what the run locked last and `now`; Refusal where the locked bytes are gone."""
    loaded = loading.locked(services, state, now.folder)
    if loaded.contract is None:
        raise Refusal(
            "plan-diff.not-kept",
            f"The plans that run {state.number} of phase {state.phase} locked are not in the repository any more.",
            hint="idumb doctor",
        )
    configuration = loaded.contract.hash != state.contract.hash
    return Since(state, loaded.contract, plan_diff.compare(loaded.contract, now, configuration=configuration))
