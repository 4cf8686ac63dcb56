"""What people answered goes into the plan, as one more version of the contract; remembered answers are given here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from idumb.app.consent import approvals
from idumb.app.contract import contract_versions, loading
from idumb.app.contract.contract_versions import Next
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.decision import Answer, Decision
from idumb.domain.errors import IdumbError, InputError, Refusal
from idumb.domain.plans.plan import STRICT, Plan, Task
from idumb.domain.runs.run import RunState

if TYPE_CHECKING:
    from idumb.domain.consent.approval import Approval, StoredApproval


def locked(services: Services, state: RunState) -> Contract | None:
    """The contract of the run, where the plans are as it locked them; None where they are not."""
    try:
        contract = loading.of(services, state.phase).contract
    except InputError:
        return None
    return contract if contract is not None and contract.hash == state.contract.hash else None


def append(services: Services, journal: Journal, contract: Contract) -> Contract:
    """Let the plans tell of every answer that they do not tell of yet; the contract that follows.

    No task changes, so consent goes on as it was given: a word without an end as one, each approval with its own. What
    a plan leaves no place for, or no consent can follow, stays in the record alone, and a note says so.
    """
    state = journal.state
    waiting = [i for i in state.answers if i in state.decisions and i not in state.contract.appended]
    for plan in contract.plans:
        mine = tuple(i for i in waiting if _plan_of(contract, state.decisions[i]).path == plan.path)
        if not mine:
            continue
        try:
            contract = _append(services, journal, contract, plan.path, mine)
        except (InputError, Refusal) as problem:
            services.reporter.note(f"The plan does not tell of {', '.join(mine)}, the record does: {problem.message}")
    return contract


def _plan_of(contract: Contract, question: Mapping[str, Any]) -> Plan:
    task = str(question.get("task"))
    return contract.plan_of(task) if task in contract.tasks else contract.plans[-1]


def _append(services: Services, journal: Journal, contract: Contract, path: str, mine: tuple[str, ...]) -> Contract:
    from idumb.domain import amendment, plan_diff
    from idumb.domain.amendment import Amendment

    state = journal.state
    contract_versions.require_file(services, path, state.phase)
    before = services.plans.plans(contract.folder)
    contract_versions.require_bytes(contract, before)
    lines = [Amendment(amendment.DECIDE, i, _words(state.decisions[i], state.answers[i])) for i in mine]
    made = services.plans.amended(dict(before)[path], path, lines)
    sources = tuple((p, made if p == path else data) for p, data in before)
    loaded = loading.of_sources(services, state.phase, contract.folder, sources)
    if loaded.contract is None or plan_diff.compare(contract, loaded.contract).changes_tasks:
        raise InputError("amend.cannot-write", f"{path} would not be the same plan with it")
    by = ", ".join(dict.fromkeys(str(state.answers[i]["by"]) for i in mine))
    consents = services.consent.given(contract.hash)
    carried = _approvals(services, state, contract, loaded.contract, by, consents=consents)
    what = tuple(f"answer to {i}: {state.answers[i]['choice']}" for i in mine)
    for one in carried:
        services.consent.approve(one)
    wanted = Next(loaded.contract, sources, what, by, path=path, before=dict(before)[path], changes_tasks=False)
    contract_versions.lock(services, journal, dataclasses.replace(wanted, answers=mine, consents=consents))
    return loaded.contract


def _words(question: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    said = f"{answer['choice']}, says {answer['by']}, to: {question['what']}"
    return f"{said} ({answer['guidance']})" if answer.get("guidance") else said


def _approvals(
    services: Services, state: RunState, old: Contract, new: Contract, by: str, *, consents: bool
) -> tuple[StoredApproval, ...]:
    """Each approval that holds, for the plan with the answers in it; Refusal where nobody's word would follow.

    Only the bytes of the plans differ, and only by answers of people. Each keeps its end and what it accepts. A
    signature is over the bytes and nobody else can give it again, so the plan stays where only that one counts.
    """
    from idumb.domain.consent.approval import StoredApproval

    strict = STRICT in (state.mode, new.mode)
    if strict:
        approvals.require(services, old, base=state.base.commit)
    live = approvals.all_valid(services, old, base=state.base.commit)
    free = [kept.approval for kept in live if kept.signature is None]
    lost = {t for kept in live for t in kept.approval.accepted} - {t for one in free for t in one.accepted}
    if lost or (not free and (strict or not consents)):
        why = "its approval is signed, and the signature is over the plan as it is"
        raise Refusal(
            "approval.missing", why if live else "no consent holds that could follow it", details={"phase": old.phase}
        )
    return tuple(StoredApproval(_carried(services, one, new, by)) for one in reversed(free))


def _carried(services: Services, one: Approval, new: Contract, by: str) -> Approval:
    from idumb.domain.consent import approval

    return dataclasses.replace(
        one,
        plan_hash=contracts.phase_hash(new.plans),
        contract_hash=new.hash,
        validated_at=services.clock.now(),
        validator=f"idumb {services.version}, answers of {by}",
        nonce=services.consent.nonce(),
        bound={**one.bound, "plans": approval.part({p.path: p.sha256 for p in new.plans})},
    )


def remembered_answer(services: Services, question: Decision, task: Task) -> Answer | None:
    """What a person asked to be answered each time; None for what needs their word."""
    from idumb.domain.runs import saved_answers

    name = saved_answers.key_of_question(question)
    if name is None or not saved_answers.may_answer(task):
        return None
    try:
        known = services.saved_answers.get(name)
    except (IdumbError, OSError) as problem:
        services.reporter.note(f"Remembered answers are left aside: {problem}")
        return None
    return None if known is None else saved_answers.answer(known, question)
