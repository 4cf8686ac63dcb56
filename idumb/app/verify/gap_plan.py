"""Gap plans: write a plan that closes the gaps of a verification, one task for each, in a new file."""

from __future__ import annotations

import re
from dataclasses import replace

from idumb.app.core.services import Services
from idumb.app.planning import draft_plan, phase_context
from idumb.domain import whole_numbers
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.proof import ledger, verification

_SEQUENCE = re.compile(r"-([0-9]+)[a-z]?\Z")


def write(services: Services, contract: Contract, record: dict[str, object]) -> str | None:
    """Write a legal plan and return its path; None if there is no gap."""
    without_secrets = services.redaction.redact
    # A check that contains a secret would not run without it, so the plan omits such a check.
    gaps = tuple(
        each if each.check is None or without_secrets(each.check) == each.check else replace(each, check=None)
        for each in verification.gaps_of(record)
    )
    if not gaps:
        return None
    if phase_ids.path_in(contract.folder) is not None:
        raise Refusal(
            "plan.step-plan",
            f"{contract.phase} is a step plan, which cannot have a second plan.",
            hint=f"Change the step plan, then idumb execute {phase_ids.path_of(contract.phase)}",
            details={"path": phase_ids.path_of(contract.phase)},
        )
    where = phase_context.locate(services, contract.phase)
    identity, path = draft_plan.next_path(services, where)
    claims = [c for task in contract.tasks.values() for c in ledger.written_claims(task.files or ())]
    text = services.documents.gap_plan(
        contract,
        gaps,
        identity=identity,
        first=whole_numbers.next_free(m[1] for t in contract.tasks if (m := _SEQUENCE.search(t))),
        builder=contract.plans[0].builder or services.settings.builder,  # without one, its tasks are for a person
        reach=verification.reachable(claims),
    )
    draft = draft_plan.judge(services, where, identity, path, without_secrets(text))
    if not draft.legal:
        kept = draft_plan.keep(services, draft)
        raise IdumbError(
            "plan.gaps-illegal",
            f"The plan for {len(gaps)} gaps was not written because it is not legal: {draft.feedback}",
            hint=f"Correct the draft in {kept}, and move it to {path}",
        )
    draft_plan.write(services, draft)
    return path
