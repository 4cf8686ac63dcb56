"""The lines that tell a person what a contract runs and writes, for questions about consent and approval."""

from __future__ import annotations

import json
from collections.abc import Iterable

from idumb.app.consent import asking, needs
from idumb.app.contract import plan_checks
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.grant import Parts
from idumb.domain.plans.plan import BUILD, IRREVERSIBLE, Plan, Task
from idumb.domain.plans.workflow import Workflow
from idumb.domain.proof import ledger

_SHOWN_PATHS = 8


def subject_of(contract: Contract) -> str:
    """Return `phase 1: 3 tasks of .planning/phases/1/01-PLAN.md`."""
    tasks = "1 task" if len(contract.tasks) == 1 else f"{len(contract.tasks)} tasks"
    return f"phase {contract.phase}: {tasks} of {', '.join(p.path for p in contract.plans)}"


def lines(services: Services, contract: Contract, parts: Parts, most: int = _SHOWN_PATHS) -> Iterable[str]:
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
    yield from (f"a {scope} may use {words}" for scope, words in limits(services).items())
    yield from _prepare_lines(services)
    for path in contracts.consent_paths(contract):
        yield f"writes {path}, which is protected unless declared"
    warnings = plan_checks.warnings(services, contract)
    yield from (f"warning {finding.place}: {finding.message}" for finding in warnings[:most])
    if len(warnings) > most:
        yield f"{len(warnings) - most} more warnings: idumb check-plan {contract.phase}"


def limits(services: Services) -> dict[str, str]:
    """Return the ceilings of a task and of a run, in words."""
    return {scope: ceiling.words for scope, ceiling in services.settings.ceilings.items() if ceiling.words}


def unjudged_lines(services: Services, contract: Contract) -> Iterable[str]:
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
    try:
        definitions = services.definitions.all()
    except InputError:  # a folder of definitions cannot be read
        definitions = ()
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
