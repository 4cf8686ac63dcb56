"""Writes a plan that closes what a verification left open: one task for each gap, in a file that was not there."""

from __future__ import annotations

import re
from dataclasses import replace

from idumb.app.core.services import Services
from idumb.app.planning import draft_plan, phase_context
from idumb.domain import whole_numbers
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import step_plan
from idumb.domain.proof import ledger
from idumb.domain.runs import gap
from idumb.domain.runs.gap import Gap

_SEQUENCE = re.compile(r"-([0-9]+)[a-z]?\Z")


def write(services: Services, contract: Contract, record: dict[str, object]) -> str | None:
    """The path of the plan; None where nothing is open. It is written only where it is legal beside the others."""
    shown = services.redaction.redact
    # A command is run as it is, so one that holds a secret cannot be handed on without it.
    found = tuple(
        one if one.check is None or shown(one.check) == one.check else replace(one, check=None)
        for one in gap.from_verification(record)
    )
    if not found:
        return None
    if step_plan.path_in(contract.folder) is not None:
        raise Refusal(
            "plan.step-plan",
            f"{contract.phase} is a step plan, and a step plan has no second plan.",
            hint=f"Change it, then idumb execute {step_plan.path_of(contract.phase)}",
            details={"path": step_plan.path_of(contract.phase)},
        )
    where = phase_context.locate(services, contract.phase)
    identity, path = draft_plan.next_path(services, where)
    wanted = shown(text(services, contract, identity, found))
    draft = draft_plan.judge(services, where, identity, path, wanted)
    if not draft.legal:
        kept = draft_plan.keep(services, draft)
        raise IdumbError(
            "plan.gaps-illegal",
            f"The plan for {len(found)} gaps was not written, because it is no legal plan: {draft.feedback}",
            hint=f"It is kept in {kept}; correct it and put it to {path}",
        )
    draft_plan.write(services, draft)
    return path


def text(services: Services, contract: Contract, identity: str, found: tuple[Gap, ...]) -> str:
    """The plan as Markdown. Its tasks are for the configured builder, and for a person where there is none."""
    first_free = whole_numbers.next_free(m[1] for t in contract.tasks if (m := _SEQUENCE.search(t)))
    claims = [c for task in contract.tasks.values() for c in ledger.written_claims(task.files or ())]
    first = contract.plans[0]
    return services.documents.gap_plan(
        contract,
        found,
        identity=identity,
        first=first_free,
        builder=first.builder or services.settings.builder,
        reach=gap.reachable(claims),
    )
