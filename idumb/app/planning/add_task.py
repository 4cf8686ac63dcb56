"""Add tasks to a plan without changing any other byte; in a phase that has a run, as an amendment of its contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from idumb.app.consent import phase_grants
from idumb.app.contract import contract_versions, loading, plan_checks
from idumb.app.core.result import Result
from idumb.app.core.services import Services, again
from idumb.app.planning import draft_plan, new_plan
from idumb.app.planning.new_plan import Read, Shipped
from idumb.app.review import amend, check_plan
from idumb.app.session import operation
from idumb.domain import amendment, wording
from idumb.domain.action import Action
from idumb.domain.amendment import Amendment
from idumb.domain.consent.grant import LIVE
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import ERROR, Finding
from idumb.domain.plans import new_task
from idumb.domain.plans.new_task import NewTask, Placed
from idumb.domain.plans.plan import Plan
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `plan add-task`. `plan` is the id of the plan, by default the last one of the phase.

    `depends_on` None means the last task of the plan. `requirement` None means the only one of the plan, if there is
    one. `builder` None is that of the plan or the configuration, or a person if they have none. `why`, `yes` and
    `agreed` are those of `amend`.
    """

    phase: str
    tasks: tuple[NewTask, ...]
    template: str = new_plan.DEFAULT
    plan: str | None = None
    depends_on: tuple[str, ...] | None = None
    requirement: str | None = None
    builder: str | None = None
    why: str = ""
    yes: bool = False
    agreed: str | None = None


def add(services: Services, request: Request, shipped: Shipped, read: Read | None, who: str) -> Result:
    """Add the tasks behind the last task of a plan, if the phase is valid with them; otherwise write nothing.

    `read` asks for the tasks if the flags name none.

    Refusal `plan.approved` if the phase was approved and nobody agrees that the approval ends.
    """
    if not request.tasks and read is not None:
        request = replace(request, tasks=new_plan.asked_tasks(read, request.template))
    if not request.tasks:
        raise InputError("plan.bad-task", "No task is named.", hint=again(services, *new_plan.EXAMPLE))
    new_plan.require_tasks(request.tasks, Action.of("plan", "add-task", request.phase))
    template = new_plan.template(services, request.template, shipped)
    contract = loading.runnable(services, loading.load_phase(services, request.phase))
    plan = amend.receiving_plan(contract, request.plan)
    placed = _placed(services, contract, plan, request)
    builder = request.builder or (None if plan.builder or services.settings.builder else new_plan.HUMAN)
    only = tuple(plan.requirements) if len(plan.requirements) == 1 else ()
    requirements = only if request.requirement is None else (request.requirement,)
    text = services.documents.new_tasks(template, placed, requirements, builder)
    data = {
        "phase": contract.phase,
        "path": plan.path,
        "template": request.template,
        "tasks": [each.id for each in placed],
        "findings": [],
        "written": True,
    }
    if services.log.latest_run(contract.phase) is not None:
        # Added to the run as well: checked against completed work, shown, and agreed to.
        change = amend.Request(
            request.phase,
            (Amendment(amendment.ADD, None, text),),
            plan=plan.plan,
            why=request.why,
            yes=request.yes,
            agreed=request.agreed,
        )
        result = amend.amend(services, change, who)
        return replace(result, data={**data, "amendment": result.data, "next": result.data["next"]})
    return _written(services, request, contract, plan, text, data)


def _placed(services: Services, contract: Contract, plan: Plan, request: Request) -> tuple[Placed, ...]:
    first = check_plan.next_free_id(contract)
    stem, _, number = first.rpartition("-")
    ids = [f"{stem}-{int(number) + step:02d}" for step in range(len(request.tasks))]
    depends_on = (plan.tasks[-1].id,) if request.depends_on is None else request.depends_on
    created = {claim.path for task in contract.tasks.values() for claim in task.files or () if claim.verb == "create"}
    return new_task.placed(
        request.tasks, ids, depends_on, lambda path: path in created or bool(services.files.existing([path]))
    )


def _written(
    services: Services, request: Request, contract: Contract, plan: Plan, text: str, data: dict[str, Any]
) -> Result:
    """Add the tasks to a plan that never ran."""
    sources = dict(services.plans.plans(contract.folder))
    contract_versions.require_bytes(contract, tuple(sources.items()))
    before = sources[plan.path]
    changed = services.plans.amended(before, plan.path, (Amendment(amendment.ADD, None, text),))
    data["findings"] = [finding.as_dict() for finding in _new_findings(services, contract, plan.path, changed)]
    if any(row["severity"] == ERROR for row in data["findings"]):
        return draft_plan.illegal(data, f"The phase would not be valid with the new task; {plan.path} was not changed.")
    was_approved = _end_approval(services, request, contract, data["tasks"])
    contract_versions.require_file(services, plan.path, contract.phase)
    with operation.owned(services, "plan add-task") as owned:
        owned.record()
        contract_versions.require_bytes(contract, services.plans.plans(contract.folder))
        services.reports.write_source(plan.path, changed.decode("utf-8"))
        services.trees.force((plan.path,))
    following = "approve" if was_approved else "execute-phase"
    return Result({**data, "next": [Action.of(following, contract.phase), Action.of("check-plan", contract.phase)]})


def _new_findings(services: Services, contract: Contract, path: str, changed: bytes) -> list[Finding]:
    """Return the findings that the phase has only with the changed plan."""
    sources = {**dict(services.plans.plans(contract.folder)), path: changed}
    loaded = loading.load_sources(services, contract.phase, contract.folder, [*sources.items()])
    present = loading.load_phase(services, contract.phase)
    known = {(f.code, f.message) for f in plan_checks.findings(services, present)}
    findings = plan_checks.findings(services, loading.with_links(services, loaded))
    return [f for f in findings if f.severity == ERROR or (f.code, f.message) not in known]


def _end_approval(services: Services, request: Request, contract: Contract, tasks: Sequence[str]) -> bool:
    """Return whether the phase is approved; then a person has agreed that the approval ends with the change."""
    approval = phase_grants.status(services, contract)
    if approval is None or approval["standing"] != LIVE:
        return False
    phase, names = contract.phase, wording.listed(tasks)
    command = again(services, "--yes")
    choice = Choice("add", "add it", f"the approval by {approval['by']} ends; approve the phase again", command)
    question = Decision.confirmation(
        f"add-task.{contract.hash[:12]}",
        "approval",
        f"Add {names} to phase {phase}, which is approved",
        "An approval covers the plans exactly as they are.",
        [f"adds {task}" for task in tasks],
        choice,
        "do not change the plan",
        "the approval stays valid",
    )
    if not request.yes:
        words = f"Phase {phase} is approved, and adding {names} would end the approval. Nothing was written."
        details = {"phase": phase, "command": command}
        if not question.agreed(services.asker.ask(question)):
            raise Refusal("plan.approved", words, hint=question.choices[0].command, details=details)
    return True
