"""Consent to a contract: nothing runs before you agreed to exactly this contract, configuration and programs.

The lines that tell a person what a contract runs and writes are here, also for approvals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from idumb.app import role_calls
from idumb.app.consent import asking, needs, phase_grants
from idumb.app.consent.asking import ConsentText, Unanswered
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import loading, plan_checks
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Services
from idumb.domain import agent, wording
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, InputError, Refusal
from idumb.domain.grant import Change, Need, Parts
from idumb.domain.plans.plan import BUILD, IRREVERSIBLE, STRICT, Plan, Task
from idumb.domain.plans.workflow import Workflow
from idumb.domain.proof import ledger

_WHY = (
    "A plan can run commands on this machine. It runs only after you agree to exactly this contract, configuration and"
    " these programs."
)
_SHOWN_PATHS = 8
_DRY_RUN = " A dry run runs the same commands in a copy of the working tree, and then removes the copy."


def ensure(services: Services, contract: Contract, request: RunRequest) -> None:
    """Require consent: given earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    A strict plan, and any plan in strict mode, needs a valid approval.
    A dry run starts no irreversible task, so nobody has to accept those, and asks no judges.
    If the phase will be verified, the same question covers verifier and skeptic. Without consent to them the run
    still works; the verification then reports that they were not asked.
    """
    approve, dry_run = request.approve, request.dry_run
    if request.approval is not None:
        phase_grants.import_signed(services, contract, request.approval)
    judged, strict = request.verify and not dry_run, STRICT in (contract.mode, request.mode)
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
        text = _consent_text(services, contract, need, asked, dry_run=dry_run)
        asking.ask(services, need, asked, text, approve)
    elif judges and judged and (need.digest in approve or (not approve and services.asker.interactive)):
        asking.ask(services, need, judges, role_calls.consent_text(services, need, judges), approve)
    if not dry_run:
        phase_grants.require_accepted(services, contract, strict=strict, asks=not strict)


def _consent_text(
    services: Services, contract: Contract, need: Need, missing: Sequence[Change], *, dry_run: bool
) -> ConsentText:
    judges = [change.name for change in missing if change.name in needs.JUDGES]
    invalid = None
    if any(change.name == grants.CONTRACT for change in missing):
        invalid = PhaseGrants(services, contract).why_invalid()
    differs = {} if invalid is None else invalid.details
    changes = [f"changed since you agreed: {c.words}" for c in missing if c.was and c.name not in needs.JUDGES]
    if invalid is not None:
        changes = [invalid.words, *differs.get("evidence", ())]
    subject = contract_in_words(contract)
    what, yes, means = f"Run {subject}", "run it", f"consent is recorded ({need.digest[:16]})"
    if dry_run:
        what, yes = f"Dry run: rehearse {subject} in a temporary copy", "run the dry run"
        means = "the commands run in a copy; your files do not change, and no consent is recorded"
    if judges:
        what += f", and ask the {' and the '.join(judges)}"
    return ConsentText(
        what,
        _WHY + _DRY_RUN * dry_run,
        (
            *changes,
            *contract_lines(services, contract, need.parts),
            *_unjudged_lines(services, contract),
            *role_calls.consent_lines(services, judges, missing),
        ),
        yes,
        means,
        phase_grants.no_consent_message(contract, invalid, missing),
        {"contract_hash": contract.hash, **{k: v for k, v in differs.items() if k != "evidence"}},
        contract.phase,
        waits=not dry_run and bool(services.plans.plans(contract.folder)),  # that of a quick task is not written yet
    )


def why_void(services: Services, asked: Unanswered) -> str:
    """Return why a question that waits can no longer be answered; "" if it can."""
    try:
        need = needs.of_roles(services, [name for name in asked.parts if name in agent.ROLES])
        parts, is_open = need.parts, bool(role_calls.missing_consent(services, need))
        if asked.phase:
            contract = loading.require_contract(services, asked.phase)
            parts = {**needs.of_work(services, contract), **need.parts}
            is_open = bool(PhaseGrants(services, contract).missing(parts))
    except (InputError, Refusal, AdapterError) as problem:
        return problem.message.rstrip(".")
    changes = grants.changes(asked.parts, {name: each for name, each in parts.items() if name in asked.parts})
    if changes:
        return f"these changed since it was asked: {'; '.join(change.words for change in changes)}"
    return "" if is_open else "consent was given since it was asked"


# What a contract runs and writes


def contract_in_words(contract: Contract) -> str:
    """Return `phase 1: 3 tasks of .planning/phases/1/01-PLAN.md`."""
    tasks = "1 task" if len(contract.tasks) == 1 else f"{len(contract.tasks)} tasks"
    return f"phase {contract.phase}: {tasks} of {', '.join(p.path for p in contract.plans)}"


def contract_lines(services: Services, contract: Contract, parts: Parts, most: int = _SHOWN_PATHS) -> Iterable[str]:
    """Yield what will run and what will be written, one line each. Programs are shown as they are in `parts`."""
    for plan in contract.plans:
        if plan.workflow is not None:
            yield from _workflow_lines(services, plan, plan.workflow)
        for task in plan.tasks:
            yield from _task_lines(task, most)
    for plan in contract.plans:
        yield from (f"after each task: {invariant.check}" for invariant in plan.invariants)
        yield from (f"at the end: {c.command}" for c in plan.success_criteria if c.command)
    for name, models in needs.models_by_agent(services.settings, contract).items():
        part = parts.get(grants.AGENT + name)
        argv = (part.value["program"], *part.value["arguments"]) if part is not None else None
        yield f"agent {name}: {asking.words_of_binding(services, name, argv, models=models)}"
    ceilings = services.settings.ceilings.items()
    yield from (f"a {scope} may use {ceiling.words}" for scope, ceiling in ceilings if ceiling.words)
    yield from _prepare_lines(services)
    for path in contracts.consent_paths(contract):
        yield f"writes {path}, which is protected unless declared"
    warnings = plan_checks.warnings(services, contract)
    yield from (f"warning {finding.place}: {finding.message}" for finding in warnings[:most])
    if len(warnings) > most:
        yield f"{len(warnings) - most} more warnings: idumb check-plan {contract.phase}"


def _unjudged_lines(services: Services, contract: Contract) -> Iterable[str]:
    """Yield the open questions of the self-check, in one line."""
    unjudged = [question.id for question in plan_checks.open_questions(services, contract)]
    if unjudged:
        is_written = services.plans.plans(contract.folder)  # that of `idumb quick` is written after the consent
        shown = f" (idumb check-plan {contract.phase} --verbose shows the questions)" if is_written else ""
        yield f"not judged by idumb: {', '.join(unjudged)}{shown}"


def _prepare_lines(services: Services) -> Iterable[str]:
    """Yield the commands that install what checks need, and what gates run, one line each."""
    settings = services.settings
    yield from (f"before checks: {command}" for command in settings.checkout.prepare)
    for name, commands in needs.gate_commands(settings).items():
        if settings.gates[name].run:
            yield from (f"gate {name}: {command}" for command in commands)
        else:
            from idumb.domain.proof import project_checkers  # most configurations name no gate

            names = (each.label for each in project_checkers.CHECKERS if each.gate == name)
            yield f"gate {name}: those of {wording.listed(names, 9)} that the project configures"
    for name, own in settings.gates.items():
        if own.entry_point is not None:
            yield f"gate {name}: the entry point {own.entry_point} of an installed package"


_ORIGINS = {"repository": "this repository", "user": "your configuration folder", "program": "idumb"}


def _workflow_lines(services: Services, plan: Plan, head: Workflow) -> Iterable[str]:
    """Yield the definition of a run by its bytes, others with its name that do not run instead, and the inputs."""
    from idumb.domain.plans import workflow  # only workflows need it

    data = dict(services.plans.plans(plan.path.rpartition("/")[0])).get(plan.path, b"")
    named = [definition for definition in services.definitions.all if definition.name == head.name]
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
    for command in needs.task_commands(task):
        yield f"  runs   {command}"
    if task.flow is not None and task.flow.condition is not None:
        yield f"  decides {task.flow.text}"
    for command in task.rollback.commands:
        yield f"  runs   {command}, on rollback"
    if task.rollback.kind == IRREVERSIBLE:
        yield f"  irreversible: {task.rollback.reason}"
    if task.kind != BUILD:
        yield f"  asks   a person ({task.kind})"
