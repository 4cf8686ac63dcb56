"""Write the first plan of a phase from a template: its goal, its requirement, and tasks with their files and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from idumb.app.core.result import Result
from idumb.app.core.services import Services, again
from idumb.app.planning import draft_plan, phase_context
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.session import operation
from idumb.domain import wording
from idumb.domain.action import Action
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import new_task
from idumb.domain.plans.new_task import NewTask
from idumb.lazy_dataclass import dataclass

Read = Callable[[str, str, str], str | None]
"""Ask for a line: the question, the reason, and what an empty line means. None if nobody answers."""

TEMPLATES = ".idumb/templates"
NAMES = ("feature", "bugfix", "refactor", "migration", "docs", "spike")
DEFAULT = "feature"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

Shipped = Callable[[str], str]
"""Returns the text of a template that comes with idumb."""

HUMAN = "human"
EXAMPLE = ("--task", "TITLE", "create PATH", "COMMAND")


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `plan new`. `builder` None is the configuration's, or a person if it has none."""

    phase: str
    template: str = DEFAULT
    goal: str = ""
    requirement: str = ""
    tasks: tuple[NewTask, ...] = ()
    builder: str | None = None


def create(services: Services, request: Request, shipped: Shipped, read: Read | None) -> Result:
    """Write a plan that passes every check, or nothing. `read` asks for what the flags leave out.

    Refusal `plan.exists` if the phase has a plan, `plan.incomplete` if goal or tasks are missing and nobody can answer.
    """
    where = phase_context.locate(services, request.phase)
    identity, path = draft_plan.next_path(services, where)
    if identity != "01":
        raise draft_plan.already_planned(services, where)
    form = template(services, request.template, shipped)
    request = _completed(services, request, where, read)
    placed = new_task.placed(
        request.tasks,
        [f"T{where.phase}-{number:02d}" for number in range(1, len(request.tasks) + 1)],
        (),
        lambda path: bool(services.files.existing([path])),
    )
    words = {
        "phase": where.phase,
        "title": wording.one_line(where.title) or wording.one_line(request.goal),
        "goal": wording.one_line(request.goal),
        "requirement": wording.one_line(request.requirement) or wording.one_line(request.goal),
        "builder": request.builder or services.settings.builder or HUMAN,
    }
    draft = draft_plan.judge(services, where, identity, path, services.documents.new_plan(form, words, placed))
    data = {
        "phase": where.phase,
        "path": path,
        "template": request.template,
        "tasks": [each.id for each in placed],
        "findings": [finding.as_dict() for finding in draft.findings],
    }
    if not draft.legal:
        return draft_plan.illegal(data, f"The plan would not be valid, so {path} was not written.")
    with operation.owned(services, "plan new") as owned:
        owned.record()
        draft_plan.write(services, draft)
    ways = [Action.of("check-plan", where.phase), Action.of("execute-phase", where.phase)]
    return Result({**data, "written": True, "next": ways if draft.findings else ways[::-1]})


def template(services: Services, name: str, shipped: Shipped) -> str:
    """Return the template of this name: `.idumb/templates/NAME.md` if it exists, else the shipped one."""
    own = services.reports.read(f"{TEMPLATES}/{name}.md") if _NAME.fullmatch(name) else None
    if own is not None:
        return own
    if name in NAMES:
        return shipped(name)
    raise InputError(
        "template.unknown",
        f"There is no template {wording.one_line(name)}: neither idumb nor {TEMPLATES}/ has it.",
        hint=f"The templates of idumb: {', '.join(NAMES)}",
    )


def _completed(services: Services, request: Request, where: PhaseLocation, read: Read | None) -> Request:
    """Return the request with a goal and at least one valid task."""
    if read is not None:
        request = _asked(request, where, read)
    missing: dict[str, tuple[str, ...]] = {} if request.goal.strip() else {"a goal": ("--goal", "GOAL")}
    missing |= {} if request.tasks else {"a task": EXAMPLE}
    if missing:
        raise Refusal(
            "plan.incomplete",
            f"The plan of phase {where.phase} needs {' and '.join(missing)}, and nobody answered at a terminal.",
            hint=again(services, *(word for words in missing.values() for word in words)),
        )
    require_tasks(request.tasks, Action.of("plan", "new", where.phase))
    return request


def require_tasks(tasks: Sequence[NewTask], command: Action) -> None:
    """Refuse (`plan.bad-task`) a task that no plan could hold."""
    for task in tasks:
        problem = new_task.problem(task)
        if problem is not None:
            raise InputError("plan.bad-task", problem, hint=f"{command} --task 'TITLE' 'create PATH' 'COMMAND'")


def _asked(request: Request, where: PhaseLocation, read: Read) -> Request:
    """Ask for goal, requirement and tasks, as far as no flag gives them."""
    if not request.goal.strip():
        example = f"The roadmap calls the phase: {where.title}" if where.title else ""
        request = replace(request, goal=read("What is true when this phase is done?", example, "stop") or "")
        if not request.goal.strip():
            return request
        if not request.requirement.strip():
            words = "Which requirement does it serve?"
            request = replace(request, requirement=read(words, "", "the goal itself") or "")
    return request if request.tasks else replace(request, tasks=asked_tasks(read, request.template))


def asked_tasks(read: Read, template: str) -> tuple[NewTask, ...]:
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
    example = "It must fail before the work and pass after it"
    if template == "refactor":
        example = "It must pass before the work and after it"
    check = read("Which command shows that it is done?", example, "stop")
    return None if files is None or not check else NewTask(title, files, check)
