"""Consent to a contract: nothing runs before you agreed to exactly this contract and configuration."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb.app.consent import (
    agent_programs,
    approval_parts,
    approvals,
    chosen_network,
    irreversible,
    pending_consent,
)
from idumb.app.consent.agent_programs import ProgramChange
from idumb.app.consent.approvals import InvalidApproval
from idumb.app.consent.pending_consent import PendingQuestion
from idumb.app.contract import loading, plan_checks
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.app.roles import opinions, role_consent
from idumb.app.roles.role_consent import RoleConsent
from idumb.domain import canonical_json, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import AdapterError, InputError, Refusal
from idumb.domain.plans.plan import BUILD, IRREVERSIBLE, STRICT, Plan, Task
from idumb.domain.plans.workflow import Workflow
from idumb.domain.proof import ledger
from idumb.lazy_dataclass import dataclass

SHOWN_PATHS = 8
_WHY = (
    "A plan can run commands on this machine. It runs only after you agree to exactly this contract, configuration and"
    " these programs."
)


def ensure(
    services: Services,
    contract: Contract,
    *,
    approve: Sequence[str] = (),
    mode: str | None,
    approval: str | None = None,
    rehearsal: bool = False,
    earlier: Collection[str] = (),
    again: str | None = None,
    judged: bool = False,
) -> None:
    """Require consent: given earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    A strict plan, and any plan in strict mode, needs a valid approval; `approval` is a file with a signed one.
    `earlier` are the hashes of earlier contract versions of the run: naming one gives no new consent, and is no
    error if the current version has consent.
    `again` is the command to which hints add `--approve HASH`; None means the default command of the phase.
    A `rehearsal` starts no irreversible task, so nobody has to accept those.
    If the phase will be `judged`, the same question covers verifier and skeptic. Without consent to them the run
    still works; the verification then reports that they were not asked.
    """
    if approval is not None:
        approvals.import_signed(services, contract, approval)
    judges = _opinion_roles(services) if judged and not rehearsal else None
    command = again or f"idumb execute-phase {contract.phase}{' --dry-run' * rehearsal}"
    strict = STRICT in (contract.mode, mode)
    if strict:
        chosen_network.require(services, contract)
        approvals.require(services, contract)
        _ensure_judges(services, judges, approve, command)
    else:
        present = approvals.has_consent(services, contract) if set(approve) & set(earlier) else False
        remaining = tuple(digest for digest in approve if not (present and digest in earlier))
        _ensure_guided(services, contract, remaining, _ConsentRequest(command, rehearsal, judges))
    if not rehearsal:
        irreversible.require_all(services, contract, asks=not strict)


def _opinion_roles(services: Services) -> RoleConsent | None:
    """Return the consent for verifier and skeptic; None if neither is bound, or one cannot start."""
    names = opinions.bound_roles(services)
    try:
        return role_consent.required(services, names) if names else None
    except Refusal:
        return None  # the verification reports it


@dataclass(frozen=True, slots=True)
class _ConsentRequest:
    """The subject of a consent: `again` is the command that runs under it; a `rehearsal` runs in a temporary copy."""

    again: str
    rehearsal: bool = False
    judges: RoleConsent | None = None

    def summary(self, subject: str) -> str:
        run = f"Dry run: rehearse {subject} in a temporary copy" if self.rehearsal else f"Run {subject}"
        return run if self.open_judges is None else f"{run}, and ask the {' and the '.join(self.open_judges.names)}"

    @property
    def why(self) -> str:
        if not self.rehearsal:
            return _WHY
        return f"{_WHY} A dry run runs the same commands in a copy of the working tree, and then removes the copy."

    @property
    def open_judges(self) -> RoleConsent | None:
        return self.judges if self.judges is not None and self.judges.missing else None

    def yes(self, contract: Contract) -> tuple[str, str]:
        """Return the choice that gives consent, and its consequence."""
        if self.rehearsal:
            return "run the dry run", "the commands run in a copy; your files do not change, and no consent is recorded"
        agents = "" if self.open_judges is None else f" and for these agents ({self.open_judges.whole[:16]})"
        return "run it", f"consent is recorded for contract {contract.hash[:16]}{agents}"


def _ensure_guided(services: Services, contract: Contract, approve: Sequence[str], request: _ConsentRequest) -> None:
    """Require plain consent. If the programs changed, it must be given again, by a hash that covers them too."""
    moved = agent_programs.changed_programs(services, contract)
    whole = agent_programs.hash_with_programs(services, contract)
    judges_hash = request.judges.whole if request.judges is not None else None
    stranger = next((digest for digest in approve if digest not in {contract.hash, whole, judges_hash}), None)
    if stranger is not None:
        raise Refusal(
            "consent.other-contract",
            f"--approve names {stranger[:16]}, but the contract of phase {contract.phase} is now"
            f" {contract.hash[:16]}: its plan or the configuration changed.",
            hint=f"idumb check-plan {contract.phase} --json shows the current data.contract_hash",
            details={"phase": contract.phase, "expected": whole if moved else contract.hash},
        )
    matching = [digest for digest in approve if digest in {contract.hash, whole}]
    if _is_agreed(services, contract, matching, moved):
        _ensure_judges(services, request.judges, approve, request.again)
        return
    agent_programs.require_usable(services, contract)
    # Read before the question, so that the consent covers what was shown, even if a program is replaced meanwhile.
    programs = agent_programs.consent_record(services, contract)
    how = "--approve"
    if not matching or (moved and whole not in matching):
        _ask_now(services, contract, request, moved, approve)
        how = "terminal"
    services.consent.record(contract.hash, phase=contract.phase, how=how, at=services.clock.now(), agreed=programs)
    if request.open_judges is not None and (how == "terminal" or judges_hash in approve):
        role_consent.record(services, request.open_judges, how)


def _is_agreed(services: Services, contract: Contract, approved: Sequence[str], moved: Sequence[ProgramChange]) -> bool:
    if services.consent.has_consent(contract.hash) and not moved:
        return True
    return (not approved or bool(moved)) and approvals.newest_valid(services, contract) is not None


def _ensure_judges(services: Services, judges: RoleConsent | None, approve: Sequence[str], again: str) -> None:
    """Record or ask for consent to the judges alone; the phase itself may run."""
    if judges is None or not judges.missing:
        return
    if judges.whole in approve:
        role_consent.record(services, judges, "--approve")
    elif not approve and services.asker.interactive:
        role_consent.ask_now(services, judges, again)


def _ask_now(
    services: Services,
    contract: Contract,
    request: _ConsentRequest,
    moved: Sequence[ProgramChange],
    approve: Sequence[str],
) -> None:
    """Ask at the terminal; Refusal on a no, `Waiting` without a terminal or an answer in time."""
    invalid = None if services.consent.has_consent(contract.hash) else approvals.why_invalid(services, contract)
    question = decision(services, contract, request, moved, invalid)
    if not approve and question.agreed(services.asker.ask(question)):
        return
    refusal = _refusal(contract, question, moved, invalid)
    if request.open_judges is not None:
        refusal.details["consent_hash"] = request.open_judges.whole
    if services.asker.interactive and not approve:  # the question has just listed them
        refusal.details.update(evidence=[], choices=[])
    if not (approve or request.rehearsal or services.asker.interactive) and _is_written(services, contract):
        waits = PendingQuestion(
            question.id, request.again, contract.phase, request.open_judges.names if request.open_judges else ()
        )
        refusal = pending_consent.keep(services, refusal, waits)
    raise refusal


def _is_written(services: Services, contract: Contract) -> bool:
    """Return whether the plans are files. The plan of a quick task is written only after consent."""
    return bool(services.plans.plans(contract.folder))


def _refusal(
    contract: Contract, question: Decision, moved: Sequence[ProgramChange], gone: InvalidApproval | None
) -> Refusal:
    code, words = "consent.missing", approvals.no_consent_message(contract, gone)
    differs = dict(gone.details) if gone is not None else {}
    if moved:
        code = "consent.other-program"
        words = (
            f"Programs of phase {contract.phase} changed after your consent: {'; '.join(move.words for move in moved)}."
        )
        differs = {"changed": [dataclasses.asdict(move) for move in moved]}
    return Refusal(
        code,
        words,
        hint=question.choices[0].command,
        details={
            **differs,
            **next_actions.details(question, contract_hash=contract.hash, decision=question.id),
        },
    )


def decision(
    services: Services,
    contract: Contract,
    request: _ConsentRequest,
    moved: Sequence[ProgramChange] = (),
    gone: InvalidApproval | None = None,
) -> Decision:
    """Return the question. `moved` and `gone` are the differences from an earlier consent or approval."""
    approval_changes = () if gone is None else (gone.words, *gone.evidence)
    whole = agent_programs.hash_with_programs(services, contract)
    judges = request.open_judges
    approve = [whole if moved else contract.hash, *([judges.whole] if judges is not None else [])]
    text, consequence = request.yes(contract)
    command = " ".join([request.again, *(f"--approve {digest}" for digest in approve)])
    agents = role_consent.lines(services, judges) if judges is not None else ()
    return Decision.confirmation(
        f"{pending_consent.MARK}{canonical_json.digest([contract.hash, whole, *approve[1:]])}",
        "consent",
        request.summary(subject_of(contract)),
        request.why,
        (*(move.words for move in moved), *approval_changes, *lines(services, contract), *agents),
        Choice(pending_consent.YES, text, consequence, command),
        "do not run it",
        "nothing happens",
    )


@dataclass(frozen=True, slots=True)
class Pending:
    """A kept question, ready to be answered: `shown` are the programs that it names."""

    stored: PendingQuestion
    question: Decision
    contract: Contract | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)
    judges: RoleConsent | None = None


def pending(services: Services, kept: PendingQuestion) -> Pending | None:
    """Return the kept question; None if its subject changed, or consent was given since."""
    try:
        roles_consent = role_consent.required(services, kept.roles) if kept.roles else None
        if not kept.phase:
            question = (
                role_consent.question(services, roles_consent, kept.command)
                if roles_consent is not None and roles_consent.missing
                else None
            )
            return (
                Pending(kept, question, judges=roles_consent)
                if question is not None and question.id == kept.id
                else None
            )
        contract = loading.load_phase(services, kept.phase).contract
        if contract is None or contract.mode == STRICT:
            return None
        moved = agent_programs.changed_programs(services, contract)
        if _is_agreed(services, contract, (), moved):
            return None
        invalid = None if services.consent.has_consent(contract.hash) else approvals.why_invalid(services, contract)
        programs = agent_programs.consent_record(services, contract)
        question = decision(services, contract, _ConsentRequest(kept.command, judges=roles_consent), moved, invalid)
    except (InputError, Refusal, AdapterError):
        return None
    return Pending(kept, question, contract, programs, roles_consent) if question.id == kept.id else None


def record(services: Services, pending: Pending) -> None:
    """Record consent to exactly what a kept question named."""
    at, how = services.clock.now(), "decide"
    if pending.contract is not None:
        services.consent.record(
            pending.contract.hash, phase=pending.contract.phase, how=how, at=at, agreed=pending.shown
        )
    if pending.judges is not None:
        role_consent.record(services, pending.judges, how)


def subject_of(contract: Contract) -> str:
    """Return `phase 1: 3 tasks of .planning/phases/1/01-PLAN.md`."""
    tasks = "1 task" if len(contract.tasks) == 1 else f"{len(contract.tasks)} tasks"
    return f"phase {contract.phase}: {tasks} of {', '.join(p.path for p in contract.plans)}"


def lines(services: Services, contract: Contract) -> Iterable[str]:
    """Yield what will run and what will be written, one line each."""
    yield from plan_lines(services, contract)
    for name, models in approval_parts.models_by_agent(services.settings, contract).items():
        yield f"agent {name}: {agent_programs.describe_binding(services, name, models=models)}"
    yield from prepare_lines(services)
    for path in contracts.consent_paths(contract):
        yield f"writes {path}, which is protected unless declared"
    unjudged = [question.id for question in plan_checks.open_questions(services, contract)]
    if unjudged:
        is_written = services.plans.plans(contract.folder)  # that of `idumb quick` is written after the consent
        shown = f" (idumb check-plan {contract.phase} --verbose shows the questions)" if is_written else ""
        yield f"not judged by idumb: {', '.join(unjudged)}{shown}"
    yield from warning_lines(services, contract)


def prepare_lines(services: Services) -> Iterable[str]:
    """Yield the commands that install what checks need, and what gates run, one line each."""
    settings = services.settings
    yield from (f"before checks: {command}" for command in approval_parts.prepare_commands(settings))
    for name, commands in approval_parts.gate_commands(settings).items():
        if settings.gates[name].run:
            yield from (f"gate {name}: {command}" for command in commands)
        else:
            from idumb.domain.proof import project_checkers  # most configurations name no gate

            names = (each.label for each in project_checkers.CHECKERS if each.gate == name)
            yield f"gate {name}: those of {wording.listed(names, 9)} that the project configures"
    for name, own in settings.gates.items():
        if own.entry_point is not None:
            yield f"gate {name}: the entry point {own.entry_point} of an installed package"


def warning_lines(services: Services, contract: Contract, most: int = SHOWN_PATHS) -> Iterable[str]:
    """Yield the first warnings of `check-plan`, one line each."""
    warnings = plan_checks.warnings(services, contract)
    yield from (f"warning {finding.place}: {finding.message}" for finding in warnings[:most])
    if len(warnings) > most:
        yield f"{len(warnings) - most} more warnings: idumb check-plan {contract.phase}"


def plan_lines(services: Services, contract: Contract, shown_paths: int = SHOWN_PATHS) -> Iterable[str]:
    """Yield what tasks and plans run and write."""
    for plan in contract.plans:
        if plan.workflow is not None:
            yield from _workflow_lines(services, plan, plan.workflow)
        for task in plan.tasks:
            yield from _task_lines(task, shown_paths)
    for plan in contract.plans:
        yield from (f"after each task: {invariant.check}" for invariant in plan.invariants)
        yield from (f"at the end: {c.command}" for c in plan.success_criteria if c.command)


_ORIGINS = {"repository": "this repository", "user": "your configuration folder", "program": "idumb"}


def _workflow_lines(services: Services, plan: Plan, head: Workflow) -> Iterable[str]:
    """Yield the definition of a run by its bytes, others with its name that do not run instead, and the inputs."""
    from idumb.domain.plans import workflow  # only workflows need it

    try:
        data, definitions = services.plans.plan(plan.path), services.definitions.all()
    except InputError:  # the plan was removed, or a folder of definitions cannot be read
        data, definitions = b"", ()
    named = [definition for definition in definitions if definition.name == head.name]
    pinned = next((d for d in named if not d.problem and workflow.is_pinned(d.data, data)), None)
    if pinned is None:
        yield f"workflow {head.name} {head.version}, as {plan.path} defines it; no present definition has this text"
    else:
        yield f"workflow {head.name} {head.version} of {_ORIGINS[pinned.origin]}: {pinned.path}"
    for other in named:
        if other is not pinned and (other.problem or not workflow.is_pinned(other.data, data)):
            yield f"  not the workflow {head.name} of {_ORIGINS[other.origin]}, which differs: {other.path}"
    yield from (f"  input {name} = {json.dumps(value)}" for name, value in head.values.items())


def _task_lines(task: Task, shown_paths: int) -> Iterable[str]:
    yield f"{task.id} {task.title}"
    written = ledger.written_paths(task.files)
    if written:
        yield f"  writes {wording.listed(written, shown_paths)}"
    for command in approval_parts.task_commands(task):
        yield f"  runs   {command}"
    if task.flow is not None and task.flow.condition is not None:
        yield f"  decides {task.flow.text}"
    for command in task.rollback.commands:
        yield f"  runs   {command}, on rollback"
    if task.rollback.kind == IRREVERSIBLE:
        yield f"  irreversible: {task.rollback.reason}"
    if task.kind != BUILD:
        yield f"  asks   a person ({task.kind})"
