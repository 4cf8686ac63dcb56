"""Read the tasks of a draft: Markdown here, YAML in `yaml_tasks`."""

from __future__ import annotations

from idumb.domain.plans.plan import Task
from idumb.markdown.plans import fields, outline, task_reader, yaml_tasks
from idumb.markdown.plans.near_misses import NearMissChecker
from idumb.markdown.plans.outline import Draft
from idumb.markdown.plans.task_reader import Context, Reading
from idumb.markdown.syntax.nodes import Block


def read(draft: Draft, context: Context) -> list[Task]:
    """Read one task, or several if a YAML fence contains a list."""
    if draft.notation in {outline.FENCE, outline.LIST}:
        return yaml_tasks.read(draft, context)
    return [_from_markdown(draft, context)]


def _from_markdown(draft: Draft, context: Context) -> Task:
    problems = context.problems
    source = problems.source
    task = _begun(draft, context)
    split = _split_at_group(draft)
    if draft.item:
        inner = fields.read(draft.item.children[1:], context.checker)
        outer = fields.read(split[0], context.checker, fields_here=False)
        inner.steps += outer.steps
        text = fields.lines_left((draft.item.line + 1, draft.item.end_line), inner.taken, source, draft.item.column)
        region = (draft.item.end_line, draft.text_end or draft.end_line)
        behind = fields.lines_left(region, outer.taken, source)
        task.values["description"] = "\n\n".join(filter(None, (text, behind)))
    else:
        inner = fields.read(split[0], context.checker)
        region = (draft.body_line, draft.text_end or draft.end_line)
        task.values["description"] = fields.lines_left(region, inner.taken, source)
    _group(split[1], context.checker)
    for value in inner.values:
        task_reader.read_field(task, value, context)
    task_reader.step_fences(task, inner.steps, problems)
    return task_reader.finished(task, context)


def _split_at_group(draft: Draft) -> tuple[list[Block], list[Block]]:
    if draft.text_end is None:
        return draft.body, []
    own = [b for b in draft.body if b.line < draft.text_end]
    return own, draft.body[len(own) :]


def _group(blocks: list[Block], checker: NearMissChecker) -> None:
    """Report data under a group heading, which belongs to no task."""
    body = fields.read(blocks, checker, fields_here=False)
    for fence in body.steps:
        message = "These steps are under a group heading, outside a task"
        fix = "move them into a task"
        checker.problems.error(
            "steps.no-task", fence.start, message, field="steps", found=fence.info, accepted="a task", fix=fix
        )


def _begun(draft: Draft, context: Context) -> Reading:
    source = context.problems.source
    last = draft.end_line if draft.text_end is None else draft.text_end
    while last > draft.line + 1 and not source.lines[last - 1].strip():
        last -= 1
    end = source.end_of(last - 1)
    task = Reading(draft.notation, draft.id, draft.title, draft.start, end, draft.line + 1, draft.bad)
    task.spans["title"] = (draft.title_at, draft.title_at + len(draft.title))
    return task
