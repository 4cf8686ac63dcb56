"""Tasks from a template: `plan new` writes the first plan of a phase, `plan add-task` adds to a plan that exists.

No other byte of that plan changes. In a phase that has a run, the change is an amendment of its contract.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.consent import phase_grants
from idumb.app.contract import contract_versions, loading
from idumb.app.core.services import Result, Services, same_command, write_forced
from idumb.app.planning import draft_plan, phase_context
from idumb.app.planning.draft_plan import PlanFile
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.review import amend, check_plan
from idumb.app.session import operation
from idumb.domain import amendment, wording
from idumb.domain.action import Action
from idumb.domain.amendment import Amendment
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import LIVE
from idumb.domain.plans import new_task
from idumb.domain.plans.new_task import NewTask, PlacedTask
from idumb.domain.plans.plan import Plan

Read = Callable[[str, str, str], str | None]
"""Ask for a line: the question, the reason, and what an empty line means. None if nobody answers."""

TEMPLATES = ".idumb/templates"
NAMES = ("feature", "bugfix", "refactor", "migration", "docs", "spike")
_DEFAULT = "feature"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

Shipped = Callable[[str], str]
"""Returns the text of a template that comes with idumb."""

_HUMAN = "human"


class NewPlan(Struct, frozen=True):
    """Flags of `plan new`. `builder` None is the configuration's, or a person if it has none."""

    phase: str
    template: str = _DEFAULT
    goal: str = ""
    requirement: str = ""
    tasks: tuple[NewTask, ...] = ()
    builder: str | None = None


def create(services: Services, request: NewPlan, shipped: Shipped, read: Read | None) -> Result:
    """Write a plan that passes every check, or nothing. `read` asks for what the flags leave out.

    Refusal `plan.exists` if the phase has a plan, `plan.incomplete` if goal or tasks are missing and nobody can answer.
    """
    where = phase_context.locate(services, request.phase)
    file = draft_plan.next_plan(services, where, is_first=True)
    template = _template(services, request.template, shipped)
    request = _completed(services, request, where, read)
    ids = [f"T{where.phase}-{number:02d}" for number in range(1, len(request.tasks) + 1)]
    placed = new_task.placed(request.tasks, ids, (), lambda path: bool(services.named_files.existing([path])))
    goal, builder = wording.one_line(request.goal), request.builder or services.settings.builder or _HUMAN
    title, requirement = wording.one_line(where.title) or goal, wording.one_line(request.requirement) or goal
    words = {"phase": where.phase, "title": title, "goal": goal, "requirement": requirement, "builder": builder}
    draft = draft_plan.judge(services, file, services.documents.new_plan(template, words, placed))
    data = _data(where.phase, file.path, request.template, placed, draft)
    if not draft.legal:
        return draft_plan.illegal(data, f"The plan would not be valid, so {file.path} was not written.")
    with operation.recorded(services, "plan new"):
        draft_plan.write(services, draft)
    ways = [Action.of("execute-phase", where.phase), Action.of("check-plan", where.phase)]
    return Result({**data, "written": True, "next": ways})


def _data(
    phase: str, path: str, template: str, placed: Sequence[PlacedTask], draft: draft_plan.Draft | None
) -> dict[str, Any]:
    findings = [finding.as_dict() for finding in draft.findings] if draft is not None else []
    tasks = [each.id for each in placed]
    return {"phase": phase, "path": path, "template": template, "tasks": tasks, "findings": findings}


def _completed(services: Services, request: NewPlan, where: PhaseLocation, read: Read | None) -> NewPlan:
    """Return the request with a goal and at least one valid task."""
    if read is not None:
        request = _asked(request, where, read)
    missing: dict[str, tuple[str, ...]] = {} if request.goal.strip() else {"a goal": ("--goal", "GOAL")}
    missing |= {} if request.tasks else {"a task": draft_plan.NEW_TASK}
    if missing:
        raise Refusal(
            "plan.incomplete",
            f"The plan of phase {where.phase} was not written: it needs {' and '.join(missing)}.",
            hint=same_command(services, *(word for words in missing.values() for word in words)),
        )
    _require_tasks(request.tasks, Action.of("plan", "new", where.phase))
    return request


def _asked(request: NewPlan, where: PhaseLocation, read: Read) -> NewPlan:
    """Ask for goal, requirement and tasks, as far as no flag gives them."""
    if not request.goal.strip():
        example = f"The roadmap calls the phase: {where.title}" if where.title else ""
        request = replace(request, goal=read("What is true when this phase is done?", example, "stop") or "")
        if not request.goal.strip():
            return request
        if not request.requirement.strip():
            words = "Which requirement does it serve?"
            request = replace(request, requirement=read(words, "", "the goal itself") or "")
    return request if request.tasks else replace(request, tasks=_asked_tasks(read, request.template))


class Addition(Struct, frozen=True):
    """Flags of `plan add-task`. `plan` is the id of the plan, by default the last one of the phase.

    `depends_on` None means the last task of the plan. `requirement` None means the only one of the plan, if there is
    one. `builder` None is that of the plan or the configuration, or a person if they have none. `why`, `yes` and
    `agreed` are those of `amend`.
    """

    phase: str
    tasks: tuple[NewTask, ...]
    template: str = _DEFAULT
    plan: str | None = None
    depends_on: tuple[str, ...] | None = None
    requirement: str | None = None
    builder: str | None = None
    why: str = ""
    yes: bool = False
    agreed: str | None = None


def add(services: Services, request: Addition, shipped: Shipped, read: Read | None, who: str) -> Result:
    """Add the tasks behind the last task of a plan, if the phase is valid with them; otherwise write nothing.

    `read` asks for the tasks if the flags name none.
    """
    if not request.tasks and read is not None:
        request = replace(request, tasks=_asked_tasks(read, request.template))
    if not request.tasks:
        raise InputError("plan.bad-task", "No task is named.", hint=same_command(services, *draft_plan.NEW_TASK))
    _require_tasks(request.tasks, Action.of("plan", "add-task", request.phase))
    template = _template(services, request.template, shipped)
    contract = loading.valid_contract(services, loading.load_phase(services, request.phase))
    plan = amend.receiving_plan(contract, request.plan)
    placed = _placed(services, contract, plan, request)
    builder = request.builder or (None if plan.builder or services.settings.builder else _HUMAN)
    only = tuple(plan.requirements) if len(plan.requirements) == 1 else ()
    requirements = only if request.requirement is None else (request.requirement,)
    text = services.documents.new_tasks(template, placed, requirements, builder)
    data = {**_data(contract.phase, plan.path, request.template, placed, None), "written": True}
    added = (Amendment(amendment.ADD, None, text),)
    if services.log.latest_run(contract.phase) is None:
        return _written(services, contract, plan, added, data)
    # Added to the run as well: checked against completed work, shown, and agreed to.
    change = amend.Request(
        request.phase, added, plan=plan.plan, why=request.why, yes=request.yes, agreed=request.agreed
    )
    result = amend.amend(services, change, who)
    return replace(result, data={**data, "amendment": result.data, "next": result.data["next"]})


def _placed(services: Services, contract: Contract, plan: Plan, request: Addition) -> tuple[PlacedTask, ...]:
    first = check_plan.next_free_id(contract)
    stem, _, number = first.rpartition("-")
    ids = [f"{stem}-{int(number) + step:02d}" for step in range(len(request.tasks))]
    depends_on = (plan.tasks[-1].id,) if request.depends_on is None else request.depends_on
    created = {claim.path for task in contract.tasks.values() for claim in task.files or () if claim.verb == "create"}
    return new_task.placed(
        request.tasks, ids, depends_on, lambda path: path in created or bool(services.named_files.existing([path]))
    )


def _written(
    services: Services, contract: Contract, plan: Plan, added: tuple[Amendment, ...], data: dict[str, Any]
) -> Result:
    """Add the tasks to a plan that never ran. An approval of it ends, as after every change of a plan."""
    file = PlanFile(phase_context.locate(services, contract.phase), plan.plan, plan.path)
    changed = services.plans.amended(services.plans.read(plan.path), plan.path, added).decode("utf-8")
    draft = draft_plan.judge(services, file, changed)
    data["findings"] = [finding.as_dict() for finding in draft.findings]
    if not draft.legal:
        return draft_plan.illegal(data, f"The phase would not be valid with the new task; {plan.path} was not changed.")
    approval = phase_grants.newest_approval(services, contract)
    contract_versions.require_file(services, plan.path, contract.phase)
    with operation.recorded(services, "plan add-task"):
        contract_versions.require_bytes(contract, services.plans.plans(contract.folder))
        write_forced(services, plan.path, changed)
    was_approved = approval is not None and approval["standing"] == LIVE
    following = "approve" if was_approved else "execute-phase"
    return Result({**data, "next": [Action.of(following, contract.phase), Action.of("check-plan", contract.phase)]})


def _template(services: Services, name: str, shipped: Shipped) -> str:
    """Return the template of this name: `.idumb/templates/NAME.md` if it exists, else the shipped one."""
    own = services.files.read(f"{TEMPLATES}/{name}.md") if _NAME.fullmatch(name) else None
    if own is not None:
        return own
    if name in NAMES:
        return shipped(name)
    raise InputError(
        "template.unknown",
        f"There is no template {wording.one_line(name)}: neither idumb nor {TEMPLATES}/ has it.",
        hint=f"The templates of idumb: {', '.join(NAMES)}",
    )


def _require_tasks(tasks: Sequence[NewTask], command: Action) -> None:
    """Refuse (`plan.bad-task`) a task that no plan could hold."""
    for task in tasks:
        problem = new_task.problem(task)
        if problem is not None:
            raise InputError("plan.bad-task", problem, hint=f"{command} --task 'TITLE' 'create PATH' 'COMMAND'")


def _asked_tasks(read: Read, template: str) -> tuple[NewTask, ...]:
    """Ask for tasks until one has no title."""
    tasks: list[NewTask] = []
    while (task := _asked_task(len(tasks) + 1, read, template)) is not None:
        tasks.append(task)
    return tuple(tasks)


def _asked_task(number: int, read: Read, template: str) -> NewTask | None:
    """Ask for a task; None if there is no further one."""
    title = read(f"Task {number}: what is there to do?", "", "no task" if number == 1 else "no further task")
    if not title:
        return None
    files = read("Which files may it change?", "For example: create src/links.py, modify src/page.py", "none")
    must = "pass before the work and after it" if template == "refactor" else "fail before the work and pass after it"
    check = read("Which command shows that it is done?", f"It must {must}", "stop")
    return None if files is None or not check else NewTask(title, files, check)
