"""Consent to a contract: nothing runs before you agreed to exactly this contract, configuration and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from idumb.app import role_calls
from idumb.app.consent import asking, needs, phase_grants
from idumb.app.consent.asking import Kept, Subject
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import loading
from idumb.app.core.services import Services
from idumb.app.review import consent_lines
from idumb.domain import agent
from idumb.domain import grant as grants
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, InputError, Refusal
from idumb.domain.grant import Change, Need
from idumb.domain.plans.plan import STRICT

if TYPE_CHECKING:
    from idumb.app.running.admission import Request

_WHY = (
    "A plan can run commands on this machine. It runs only after you agree to exactly this contract, configuration and"
    " these programs."
)
_REHEARSAL = " A dry run runs the same commands in a copy of the working tree, and then removes the copy."


def ensure(services: Services, contract: Contract, request: Request) -> None:
    """Require consent: given earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    A strict plan, and any plan in strict mode, needs a valid approval; it can be in a file with a signed one.
    A rehearsal starts no irreversible task, so nobody has to accept those, and asks no judges.
    If the phase will be verified, the same question covers verifier and skeptic. Without consent to them the run
    still works; the verification then reports that they were not asked.
    """
    approve, rehearsal, judged = request.approve, request.rehearsal, request.verify and not request.rehearsal
    if request.approval is not None:
        phase_grants.import_signed(services, contract, request.approval)
    strict = STRICT in (contract.mode, request.mode)
    agreed = PhaseGrants(services, contract)
    if strict:
        agreed.approval()
    need = needs.of_run(services, contract)
    missing = agreed.missing(need.parts)
    judges = tuple(change for change in missing if change.name in needs.JUDGES)
    work = tuple(change for change in missing if change not in judges)
    if not strict:
        asking.require_known(services, need, approve, agreed=not work)
    if work:
        for name, problem in needs.unusable(services, contract):
            raise needs.cannot_start(name, problem) from problem
        asked = missing if need.digest in approve or judged else work
        subject = _of_run(services, contract, need, asked, rehearsal=rehearsal)
        asking.ask(services, need, asked, subject, approve)
    elif judges and judged and (need.digest in approve or (not approve and services.asker.interactive)):
        asking.ask(services, need, judges, role_calls.consent_subject(services, need, judges), approve)
    if not rehearsal:
        phase_grants.require_accepted(services, contract, strict=strict, asks=not strict)


def _of_run(
    services: Services, contract: Contract, need: Need, missing: Sequence[Change], *, rehearsal: bool
) -> Subject:
    judges = [change.name for change in missing if change.name in needs.JUDGES]
    invalid = None
    if any(change.name == grants.CONTRACT for change in missing):
        invalid = PhaseGrants(services, contract).why_invalid()
    differs = {} if invalid is None else invalid.details
    changes = [f"changed since you agreed: {c.words}" for c in missing if c.was and c.name not in needs.JUDGES]
    if invalid is not None:
        changes = [invalid.words, *differs.get("evidence", ())]
    subject = consent_lines.subject_of(contract)
    what, yes, means = f"Run {subject}", "run it", f"consent is recorded ({need.digest[:16]})"
    if rehearsal:
        what, yes = f"Dry run: rehearse {subject} in a temporary copy", "run the dry run"
        means = "the commands run in a copy; your files do not change, and no consent is recorded"
    if judges:
        what += f", and ask the {' and the '.join(judges)}"
    return Subject(
        what,
        _WHY + _REHEARSAL * rehearsal,
        (
            *changes,
            *consent_lines.lines(services, contract, need.parts),
            *consent_lines.unjudged_lines(services, contract),
            *role_calls.consent_lines(services, judges, missing),
        ),
        yes,
        means,
        phase_grants.no_consent_message(contract, invalid, missing),
        {"contract_hash": contract.hash, **{k: v for k, v in differs.items() if k != "evidence"}},
        contract.phase,
        waits=not rehearsal and bool(services.plans.plans(contract.folder)),  # that of a quick task is not written yet
    )


def why_void(services: Services, kept: Kept) -> str:
    """Return why a question that waits can no longer be answered; "" if it can."""
    try:
        need = needs.of_roles(services, [name for name in kept.parts if name in agent.ROLES])
        parts, is_open = need.parts, bool(role_calls.missing_consent(services, need))
        if kept.phase:
            contract = loading.require_contract(services, kept.phase)
            parts = {**needs.of_work(services, contract), **need.parts}
            is_open = bool(PhaseGrants(services, contract).missing(parts))
    except (InputError, Refusal, AdapterError) as problem:
        return problem.message.rstrip(".")
    changes = grants.changes(kept.parts, {name: each for name, each in parts.items() if name in kept.parts})
    if changes:
        return f"these changed since it was asked: {'; '.join(change.words for change in changes)}"
    return "" if is_open else "consent was given since it was asked"
