"""Writes answers of users into the plan, as the next version of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from idumb.app.consent import needs
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import contract_versions, loading
from idumb.app.contract.contract_versions import NextVersion
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.domain import grant as grants
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import APPROVE, CONTRACT, PLANS, Grant
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.runs.run import RunState


def locked_contract(services: Services, state: RunState) -> Contract | None:
    """The contract of the run if the present plans are the locked ones; None otherwise."""
    try:
        contract = loading.load_phase(services, state.phase).contract
    except InputError:
        return None
    return contract if contract is not None and contract.hash == state.contract.hash else None


def append_answers(services: Services, journal: Journal, contract: Contract) -> Contract:
    """Write every new answer into the plans; return the next contract.

    No task changes, so consent carries over: plain consent as such, each approval with its own expiry. If a plan has no
    place for an answer, or no consent can carry over, only the log has the answer, and a note says so.
    """
    state = journal.state
    waiting = [i for i in state.answers if i in state.decisions and i not in state.contract.appended]
    for plan in contract.plans:
        answers = tuple(i for i in waiting if _plan_of(contract, state.decisions[i]).path == plan.path)
        # The log keeps the answers; idumb never writes plans of other tools, and definitions of workflows.
        if not answers or plan.is_foreign or plan.workflow is not None:
            continue
        try:
            contract = _append_to_plan(services, journal, contract, plan.path, answers)
        except (InputError, Refusal) as problem:
            services.reporter.note(
                f"{', '.join(answers)} is recorded, but not written into the plan: {problem.message}"
            )
    return contract


def _plan_of(contract: Contract, question: Mapping[str, Any]) -> Plan:
    task = str(question.get("task"))
    return contract.plan_of(task) if task in contract.tasks else contract.plans[-1]


def _append_to_plan(
    services: Services, journal: Journal, contract: Contract, path: str, answers: tuple[str, ...]
) -> Contract:
    from idumb.domain import amendment
    from idumb.domain.amendment import Amendment

    state = journal.state
    contract_versions.require_file(services, path, state.phase)
    before = services.plans.plans(contract.folder)
    contract_versions.require_bytes(contract, before)
    lines = [Amendment(amendment.DECIDE, i, _line(state.decisions[i], state.answers[i])) for i in answers]
    amended = services.plans.amended(dict(before)[path], path, lines)
    sources = tuple((p, amended if p == path else data) for p, data in before)
    loaded = loading.load_sources(services, state.phase, contract.folder, sources)
    if loaded.contract is None or amendment.compare(contract, loaded.contract).changes_tasks:
        raise InputError("amend.cannot-write", f"the answer would change the tasks of {path}")
    by = ", ".join(dict.fromkeys(str(state.answers[i]["by"]) for i in answers))
    consents = PhaseGrants(services, contract).covers(contract.hash, plain=True)
    carried = _approvals(services, state, contract, loaded.contract, by, consents=consents)
    notes = tuple(f"answer to {i}: {state.answers[i]['choice']}" for i in answers)
    for approval in carried:
        services.consent.record(approval)
    version = NextVersion(
        loaded.contract, sources, notes, by, path=path, before=dict(before)[path], changes_tasks=False
    )
    contract_versions.lock_next(services, journal, replace(version, answers=answers, consents=consents))
    return loaded.contract


def _line(question: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    line = f"{answer['choice']}, says {answer['by']}, to: {question['what']}"
    return f"{line} ({answer['guidance']})" if answer.get("guidance") else line


def _approvals(
    services: Services, state: RunState, old: Contract, new: Contract, by: str, *, consents: bool
) -> tuple[Grant, ...]:
    """Carry each valid approval over to the plan with the answers. Refuses if no consent can carry over.

    The plans differ only by answers of users. Each approval keeps its expiry and what it accepts. A signature covers
    the bytes and idumb cannot renew it, so the plan does not change if only a signed approval counts.
    """
    strict = STRICT in (state.mode, new.mode)
    agreed = PhaseGrants(services, old, state.base.commit)
    if strict:
        agreed.approval()
    live = [grant for grant in agreed.live if grant.how == APPROVE or grant.accepted]
    free = [grant for grant in live if grant.signature is None]
    lost = {t for grant in live for t in grant.accepted} - {t for grant in free for t in grant.accepted}
    if lost or (not any(grant.how == APPROVE for grant in free) and (strict or not consents)):
        why = "its approval is signed, and the signature covers the present plan"
        raise Refusal(
            "approval.missing",
            why if live else "it has no valid consent that could carry over",
            details={"phase": old.phase},
        )
    return tuple(_carried(services, grant, new, by) for grant in reversed(free))


def _carried(services: Services, agreed: Grant, new: Contract, by: str) -> Grant:
    of_contract = {
        CONTRACT: grants.part(new.hash),
        PLANS: grants.part({p.path: p.sha256 for p in new.plans}),
        **needs.of_irreversible(new, agreed.accepted),
    }
    return replace(
        agreed,
        parts={name: of_contract.get(name, each) for name, each in agreed.parts.items()},
        at=services.clock.now(),
        validator=f"idumb {services.version}, answers of {by}",
        nonce=services.consent.nonce(),
    )
