"""Approve a phase, bound to everything that is shown, or revoke its approvals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from idumb.app.consent import needs, phase_grants
from idumb.app.contract import contract_versions, loading, plan_checks
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services, fields
from idumb.app.review import ask_consent
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import APPROVE, Grant
from idumb.domain.intake.self_check import NO, YES
from idumb.domain.intake.self_check import Answer as Question
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import CLOSED

_ALL_PATHS = 10_000


class Request(Struct, frozen=True):
    """Flags of `approve`. `accept` are ids of irreversible tasks, `sign` a key file, `file` the path for a copy.

    `expires` is a time. `answers` are answers to open questions of the self-check: `design=yes` or `design=no`.
    """

    phase: str
    who: str
    hash: str | None = None
    expires: str | None = None
    pin_base: bool = False
    accept: tuple[str, ...] = ()
    sign: str | None = None
    file: str | None = None
    answers: tuple[str, ...] = ()


def approve(services: Services, request: Request) -> Result:
    """Record an approval of the current contract. Runs nothing, and writes nothing in the working tree."""
    contract = plan_checks.startable_contract(services, loading.load_phase(services, request.phase))
    _require_known(contract, request)
    unjudged = plan_checks.open_questions(services, contract)
    answered = _answered_yes(contract, request, unjudged)
    unanswered = tuple(one for one in unjudged if one.id not in answered)
    # At a terminal, the question of a strict plan shows the open questions, so approving it answers them.
    by_question = unanswered if request.hash is None and contract.mode == STRICT else ()
    approval = _approval(services, contract, request, (*answered, *(one.id for one in by_question)))
    # What was agreed to earlier and accepts an irreversible task which this approval does not accept.
    valid = (grant for grant in services.consent.grants(contract.phase) if grant.revoked is None)
    outdated = tuple(grant for grant in valid if set(grant.accepted) - set(request.accept))
    no_longer = tuple(dict.fromkeys(t for grant in outdated for t in grant.accepted if t not in request.accept))
    covered = (
        *approval_lines(services, contract, approval),
        *(f"this approval ends the acceptance of {task}" for task in no_longer),
        *_question_lines(contract, approval, unjudged),
    )
    if request.hash is not None and contract.mode == STRICT and unanswered:
        raise _unanswered(contract, approval, unanswered, covered)
    if request.hash is None:
        _confirm(services, contract, approval, covered)
    if request.sign is not None:
        signature = services.signatures.sign(approval.canonical(), request.sign, interactive=services.asker.interactive)
        approval = replace(approval, signature=signature)
    copy = services.consent.export(approval, request.file) if request.file else None
    _revoke(services, outdated, request.who)
    services.consent.record(approval)
    data = {
        **_as_json(contract, approval),
        "no_longer_accepted": list(no_longer),
        "signed": approval.signature is not None,
        "file": copy,
        "shown": list(covered),
        "asked": request.hash is None,
        "next": _next(services, contract),
    }
    left = [task.id for task in needs.irreversible_tasks(contract) if task.id not in request.accept]
    options = " ".join(f"--accept-irreversible {task}" for task in left)
    words = f"irreversible and not accepted, so a run will refuse it: {', '.join(left)}; to accept, add {options}"
    return Result(data, warnings=(words,) if left else ())


def _approval(services: Services, contract: Contract, request: Request, answered: Sequence[str]) -> Grant:
    """Return an approval of the contract as it is now. Refuses if a program cannot be started."""
    needs.require_startable(services, contract, services.adapters)
    base = needs.present_base(services, contract.phase) if request.pin_base else None
    parts = needs.of_approval(services, contract, base=base) | needs.of_irreversible(contract, request.accept)
    approval = phase_grants.new_grant(services, contract.phase, parts, how=APPROVE, need=contract.hash, by=request.who)
    return replace(
        approval,
        expires=request.expires,
        base_commit=services.history.head().commit,
        answers=tuple({"question": id, "answer": YES, "by": request.who, "at": approval.at} for id in answered),
        validator=f"idumb {services.version}",
    )


def _as_json(contract: Contract, approval: Grant) -> dict[str, Any]:
    return {
        "phase": contract.phase,
        "status": "approved",
        "plan_hash": contracts.phase_hash(contract.plans),
        "contract_hash": contract.hash,
        "validated_at": approval.at,
        **fields(approval, "validator", "by", "nonce", "base_commit", "expires", "accepted"),
        "scope": ", ".join(dict.fromkeys(p.scope.root or "." for p in contract.plans)),
        "mode": contract.mode,
        "bound": {name: asdict(each) for name, each in approval.parts.items()},
        "answers": [dict(one) for one in approval.answers],
    }


def _answered_yes(contract: Contract, request: Request, unjudged: Sequence[Question]) -> tuple[str, ...]:
    """Return the open questions that you answered yes, as in `design,scope=yes`. A no refuses the plan."""
    by_id = {question.id: question for question in unjudged}
    answers: dict[str, str] = {}
    for text in request.answers:
        ids, _, answer = text.partition("=")
        unknown = [id for id in ids.split(",") if id not in by_id]
        if unknown:
            raise InputError(
                "approval.unknown-question",
                f"Phase {contract.phase} has no open question {', '.join(unknown)};"
                f" its open questions: {', '.join(by_id) or 'none'}.",
                hint=Action.of("check-plan", contract.phase, "--verbose"),
                details={"phase": contract.phase},
            )
        answers |= dict.fromkeys(ids.split(","), answer)
    refused = [by_id[id] for id, answer in answers.items() if answer == NO]
    if refused:
        words = ", ".join(question.id for question in refused)
        raise Refusal(
            "approval.answered-no",
            f"Phase {contract.phase} is not approved: you answered no to {words}.",
            hint=f"Change the plan, then idumb check-plan {contract.phase}",
            details={
                "phase": contract.phase,
                "evidence": [f"{question.id}: {question.question} no" for question in refused],
            },
        )
    return tuple(answers)


def _question_lines(contract: Contract, approval: Grant, unjudged: Sequence[Question]) -> Iterator[str]:
    """Yield each open question with the answer that this approval gives."""
    answered = {one["question"] for one in approval.answers}
    for one in unjudged:
        if one.id in answered:
            yield f"you answer yes to {one.id}: {one.question}"
        else:
            words = f"--answer {one.id}=yes" if contract.mode == STRICT else "guided mode needs no answer"
            yield f"not judged, {one.id}: {one.question} ({words})"


def _unanswered(
    contract: Contract, approval: Grant, unanswered: Sequence[Question], covered: tuple[str, ...]
) -> Refusal:
    """Return the refusal of a strict plan without an answer to each question that idumb cannot judge."""
    command = _command(contract, approval, [question.id for question in unanswered])
    answer = Choice("answer", "answer each with yes", "the approval records the answers and who gave them", command)
    return Refusal(
        "approval.unanswered",
        f"Phase {contract.phase} is strict; its self-check needs answers:"
        f" {', '.join(question.id for question in unanswered)}.",
        hint=command,
        details=actions.offer(
            f"Approve phase {contract.phase}",
            "idumb cannot judge these questions, so you answer them when you approve.",
            [f"{question.id}: {question.question}" for question in unanswered],
            (answer, Choice("no", "do not approve it", "nothing is approved")),
            questions=[{"id": question.id, "question": question.question} for question in unanswered],
            shown=list(covered),
            contract_hash=contract.hash,
        ),
    )


def _command(contract: Contract, approval: Grant, more: Iterable[str] = ()) -> Action:
    """Return the command that gives exactly this approval without a terminal."""
    accepted = [word for task in approval.accepted for word in ("--accept-irreversible", task)]
    question_ids = ",".join([*(answer["question"] for answer in approval.answers), *more])
    answered = ["--answer", f"{question_ids}=yes"] if question_ids else []
    return Action.of("approve", contract.phase, "--hash", contract.hash, *accepted, *answered)


def _revoke(services: Services, agreed: Iterable[Grant], who: str) -> None:
    for grant in agreed:
        services.consent.record(replace(grant, revoked={"at": services.clock.now(), "by": who}))


def _next(services: Services, contract: Contract) -> list[Action]:
    """Return the next commands. An unfinished run of a changed plan is amended first."""
    state, run_command = run_lookup.latest_run(services, contract.phase), phase_ids.run_command(contract.phase)
    if contract_versions.is_verified(state, contract):  # it is for checks that run again
        return [actions.NEXT]
    if state is None or state.state in CLOSED:
        return [run_command]
    if state.contract.hash == contract.hash:  # it alone continues a run that was stopped
        return [Action.of("resume", contract.phase)]
    if {plan.path: plan.sha256 for plan in contract.plans} == dict(state.contract.plans):
        return [run_command]
    return [Action.of("amend", contract.phase, "--from-file"), run_command]


def revoke(services: Services, phase: str, who: str) -> Result:
    """Revoke everything that was agreed to about a phase. Reads no plan, so the plan need not exist.

    A strict run in progress stops before its next task.
    """
    places = [name for name in services.consent.places() if services.plans.same_phase(name, phase)]
    agreed = [grant for name in places for grant in services.consent.grants(name) if grant.revoked is None]
    if not agreed:
        raise Refusal(
            "approval.none",
            f"Nothing was agreed to about {phase if phase == needs.ROLES else f'phase {phase}'}, or it is revoked.",
            hint=Action("status"),
            details={"phase": phase},
        )
    _revoke(services, agreed, who)
    approvals = [grant for grant in agreed if grant.how == APPROVE]
    return Result(
        {
            "phase": agreed[0].place,
            "status": grants.REVOKED,
            "revoked": len(approvals),
            "withdrawn": len(agreed) - len(approvals),
            "by": who,
            "next": [] if places == [needs.ROLES] else [Action.of("approve", phase)],
        }
    )


def _require_known(contract: Contract, request: Request) -> None:
    irreversible_ids = [t.id for t in needs.irreversible_tasks(contract)]
    unknown = [task for task in request.accept if task not in irreversible_ids]
    if unknown:
        raise InputError(
            "approval.not-irreversible",
            f"{', '.join(unknown)} is not an irreversible task of phase {contract.phase};"
            f" its irreversible tasks: {', '.join(irreversible_ids) if irreversible_ids else 'none'}.",
            hint=Action.of("check-plan", contract.phase),
            details={"phase": contract.phase},
        )
    if request.hash is not None and request.hash != contract.hash:
        raise Refusal(
            "approval.other-contract",
            f"--hash names {request.hash[:16]}, but the contract of phase {contract.phase} is now"
            f" {contract.hash[:16]}: its plan, the policy or the configuration changed.",
            hint=Action.of("check-plan", contract.phase),
            details={"phase": contract.phase, "expected": request.hash, "contract_hash": contract.hash},
        )


def _confirm(services: Services, contract: Contract, approval: Grant, covered: tuple[str, ...]) -> None:
    """Require that you confirm the approval at the terminal; Refusal otherwise."""
    until = f" until {approval.expires}" if approval.expires else ""
    means = f"contract {contract.hash[:16]} is approved{until}; nothing is run now"
    question = Decision.confirmation(
        f"approval.{contract.hash[:12]}",
        "approval",
        f"Approve {ask_consent.contract_in_words(contract)}",
        "Once approved, it runs on this machine without further questions, whenever you start it, until anything"
        " listed here changes.",
        covered,
        Choice("approve", "approve it", means, _command(contract, approval)),
        "do not approve it",
        "nothing happens",
    )
    words = f"Contract {contract.hash[:16]} of phase {contract.phase} was not approved."
    details = actions.offer_of(question, contract_hash=contract.hash)
    actions.require_yes(services, question, Refusal("approval.not-given", words, details=details))


def approval_lines(services: Services, contract: Contract, approval: Grant) -> Iterable[str]:
    """Yield everything that the approval covers, in words and in full."""
    yield from ask_consent.contract_lines(services, contract, approval.parts, _ALL_PATHS)
    tools = sorted({s.tool for t in contract.tasks.values() for s in t.steps})
    yield f"tools of steps: {', '.join(tools) if tools else 'none'}"
    bound = {name: part.value for name, part in approval.parts.items()}
    for path, sha in bound["files"].items():
        yield f"commands use {path}, sha256 {sha}"
    for path, folder in bound["scope"].items():
        yield f"scope of {path}: {folder}"
    protected = [*bound["protected"]["configuration"], *(p for v in bound["protected"]["plans"].values() for p in v)]
    yield f"protected, besides idumb's own list: {', '.join(protected) if protected else 'nothing'}"
    run, processes = bound["limits"]["run"], bound["limits"]["processes"]
    chosen = [f"{name} {value}" for name, value in processes.items() if value is not None] or ["no ceiling"]
    yield f"limits: {run['max_attempts']} attempts a task, checks {run['check_timeout']} s"
    yield f"limits of processes: {', '.join(chosen)}"
    policy = bound["policy"]
    yield f"policy: {'every tool' if policy['tools'] is None else ', '.join(policy['tools'])}"
    for path, sha in bound["plans"].items():
        yield f"plan {path}, sha256 {sha}"
    yield f"configuration: sha256 {approval.parts['configuration'].digest}"
    yield f"base commit {approval.base_commit or 'none'}, {'bound' if grants.BASE in bound else 'not bound'}"
    yield f"contract {contract.hash}"
    for task in approval.accepted:
        yield f"you accept that {task} is irreversible"
