"""What changed in a phase's plans since they were locked, as tasks and fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from idumb.app import loading, place, restoring, session
from idumb.app.result import Result
from idumb.app.services import Services, plans_ref
from idumb.domain import plan_diff
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plan_diff import PlanDiff
from idumb.domain.run import RunState


@dataclass(frozen=True, slots=True)
class Since:
    """What the plans are held against: `contract` as it was locked, `diff` to what they are now."""

    state: RunState
    contract: Contract
    diff: PlanDiff


def show(services: Services, phase: str) -> Result:
    """`idumb plan-diff N`: reads only."""
    place.require_initialised(services)
    now = restoring.contract_of(services, phase)
    state = session.require_run(services, now.phase)
    found = since(services, state, now)
    same = now.hash == state.contract_hash
    data: dict[str, Any] = {
        "phase": now.phase,
        "since": {
            "run": state.id,
            "number": state.number,
            "version": state.version,
            "contract_hash": state.contract_hash,
            "ref": plans_ref(services, state.id, state.version),
        },
        "contract_hash": now.hash,
        "same": same,
        **plan_diff.as_dict(found.diff),
        "lines": list(plan_diff.lines(found.diff)),
        "next": [f"idumb resume {now.phase}"] if same else [f"idumb amend {now.phase} --from-file"],
    }
    return Result(data)


def since(services: Services, state: RunState, now: Contract) -> Since:
    """The difference between what the run locked last and `now`; Refusal where the locked bytes are gone."""
    loaded = loading.locked(services, state, now.folder)
    if loaded.contract is None:
        raise Refusal(
            "plan-diff.not-kept",
            f"The plans that run {state.number} of phase {state.phase} locked are not in the repository any more.",
            hint="idumb doctor",
        )
    configuration = loaded.contract.hash != state.contract_hash
    return Since(state, loaded.contract, plan_diff.compare(loaded.contract, now, configuration=configuration))
