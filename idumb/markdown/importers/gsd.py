"""GSD and the first iDumb: plans that idumb also reads as they are, written as a plan of its own."""

from __future__ import annotations

import re

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans.plan import SOURCE_DONE, Plan, Task
from idumb.domain.plans.source_tasks import SOURCE_ID, Need, SourcePlan, SourceTask
from idumb.markdown.importers import forms, words
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.plans import foreign_formats, plan_parser

KIND = "gsd"
_OPEN = re.compile(r"^[ \t]*[-*+][ \t]+\[ \]")
_TICKED = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[xX]\]")
key = str.casefold


def matches(file: SourceFile) -> bool:
    plan = _parsed(file).draft if foreign_formats.dialect(file.text.split("\n")) is not None else None
    return plan is not None and bool(plan.tasks)


def _parsed(file: SourceFile) -> ParsedPlan:
    return plan_parser.parse(file.text.encode("utf-8", "surrogateescape"), file.path)


def read(file: SourceFile, near: Near) -> SourcePlan:
    """Read the plan as it is read in place. Its tasks are done if GSD wrote a summary of it."""
    parsed = _parsed(file)
    plan = parsed.plan or parsed.draft
    for finding in parsed.findings:
        if finding.code != "task.ticked":
            file.note(finding.line, finding.message)
    if plan is None:
        return SourcePlan(KIND, file.path, file.path, file.path, ())
    name = re.sub(r"-?PLAN\.md$", "", file.path.rpartition("/")[2])
    summaries = near(f"{name.replace('[', '[[]')}-SUMMARY.md") if name else near("SUMMARY.md")
    done = any(summary.front.text("status") != "halted" for summary in summaries)
    for task in plan.tasks:
        _use(file, task, is_open=not done and SOURCE_DONE not in task.extra)
    for criterion in plan.success_criteria:
        file.use(criterion.span.line if criterion.span is not None else 1, *forms.ALL)
    values = {"depends_on": plan.depends_on, "wave": (plan.wave or 0) > 1, "requirements": plan.requirements,
              "user_setup": plan.setup}  # fmt: skip
    for name, span in plan.spans.items():
        if values.get(name):  # an imported plan does not say it
            file.use(span.line, *forms.ALL)
            file.note(span.line, f"{name} of the plan")
    tasks = tuple(_task(plan, task, file, done=done) for task in plan.tasks)
    return SourcePlan(KIND, file.path, plan.title, plan.goal, tasks, criteria=plan.success_criteria)


def _use(file: SourceFile, task: Task, *, is_open: bool) -> None:
    """Note that the lines of a task are its text, but not that its title says more, or that a criterion is ticked."""
    begin, end = (task.span.start, task.span.end) if task.span is not None else (0, 0)
    first = file.line_at(begin)
    for line in range(first, first + file.text.count("\n", begin, end) + 1):
        file.use(line, *forms.ALL)
        text = file.outline.lines[line - 1]
        if is_open and (line == first or (task.notation == "tag" and _TICKED.match(text))):
            said = forms.found(_OPEN.sub("", text), None, headings=False)
            file.used[line] -= {forms.MARK, forms.STATUS}.intersection(said)


def _task(plan: Plan, task: Task, file: SourceFile, *, done: bool) -> SourceTask:
    about = "\n\n".join(filter(None, (task.description, task.references)))
    files = tuple(claim.path for claim in task.files or ())
    line = task.span.line if task.span is not None else 1
    return SourceTask(
        task.extra.get(SOURCE_ID) or task.id, task.title, about, done or SOURCE_DONE in task.extra,
        tuple(Need(_own_id(plan, id), file.path, line) for id in task.depends_on),
        files=files or words.paths_in(task.title),
        criteria=task.acceptance, checks=task.verify,
        priority=task.priority, by_person=task.is_human,
        inferred=("Files: create or modify, by what is there",) if files else (), path=file.path, line=line,
    )  # fmt: skip


def _own_id(plan: Plan, id: str) -> str:
    return next((task.extra.get(SOURCE_ID) or id for task in plan.tasks if task.id == id), id)
