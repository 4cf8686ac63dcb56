"""Writes a plan that closes what a verification left open: one task for each gap, in a file that was not there."""

from __future__ import annotations

import re
from dataclasses import replace

from idumb.app import bundle, drafting
from idumb.app.services import Services
from idumb.domain import gap, ledger, step_plan, whole
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.gap import Gap

_SEQUENCE = re.compile(r"-([0-9]+)[a-z]?\Z")


def write(services: Services, contract: Contract, record: dict[str, object]) -> str | None:
    """The path of the plan; None where nothing is open. It is written only where it is legal beside the others."""
    shown = services.surroundings.without_secrets
    # A command is run as it is, so one that holds a secret cannot be handed on without it.
    found = tuple(
        one if one.check is None or shown(one.check) == one.check else replace(one, check=None)
        for one in gap.of_record(record)
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
    where = bundle.place(services, contract.phase)
    identity, path = drafting.next_path(services, where)
    wanted = shown(text(services, contract, identity, found))
    draft = drafting.judge(services, where, identity, path, wanted)
    if not draft.legal:
        kept = drafting.keep(services, draft)
        raise IdumbError(
            "plan.gaps-illegal",
            f"The plan for {len(found)} gaps was not written, because it is no legal plan: {draft.feedback}",
            hint=f"It is kept in {kept}; correct it and put it to {path}",
        )
    drafting.write(services, draft)
    return path


def text(services: Services, contract: Contract, identity: str, found: tuple[Gap, ...]) -> str:
    """The plan as Markdown. Its tasks are for the configured builder, and for a person where there is none."""
    first_free = whole.following(m[1] for t in contract.tasks if (m := _SEQUENCE.search(t)))
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
