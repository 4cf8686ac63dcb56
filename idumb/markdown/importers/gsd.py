"""GSD, GSD-2 and the first iDumb: plans that idumb also reads as they are, written as a plan of its own."""

from __future__ import annotations

from collections.abc import Callable

from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.domain.plans.plan import Plan, Task
from idumb.markdown.importers import boxes
from idumb.markdown.plans import foreign_formats, plan_parser

KIND = "gsd"


def matches(_path: str, text: str) -> bool:
    return foreign_formats.dialect(text.removeprefix("\ufeff").split("\n")) is not None


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    parsed = plan_parser.parse(text.encode(), path)
    plan = parsed.plan or parsed.draft
    unread = tuple((path, f.line, f.message) for f in parsed.findings)
    if plan is None:
        return SourcePlan(KIND, path, path, path, (), unread)
    return SourcePlan(KIND, path, plan.title, plan.goal, tuple(_task(plan, task) for task in plan.tasks), unread)


def _task(plan: Plan, task: Task) -> SourceTask:
    about = "\n\n".join(filter(None, (task.description, task.references)))
    files = tuple(claim.path for claim in task.files or ())
    return SourceTask(
        task.extra.get("x-source-id") or task.id, task.title, about,
        depends_on=tuple(_own_id(plan, id) for id in task.depends_on), files=files or boxes.paths_in(task.title),
        criteria=tuple(criterion.text for criterion in task.acceptance), checks=task.verify,
        priority=task.priority, by_person=task.is_human,
        inferred=("Files: create or modify, by what is there",) if files else (),
    )  # fmt: skip


def _own_id(plan: Plan, id: str) -> str:
    return next((task.extra.get("x-source-id") or id for task in plan.tasks if task.id == id), id)
