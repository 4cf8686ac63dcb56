"""Parse the bytes of a plan into a plan, or into findings.

`parse` never raises on its input, and returns no plan if there is an error.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans.plan import Criterion, Plan, Task
from idumb.markdown.plans import (
    criteria,
    foreign_formats,
    frontmatter,
    markdown_tasks,
    near_misses,
    outline,
    task_reader,
)
from idumb.markdown.plans.frontmatter import Frontmatter
from idumb.markdown.plans.outline import Outline
from idumb.markdown.syntax import blocks
from idumb.markdown.syntax.field_values import from_item
from idumb.markdown.syntax.nodes import Block, Fence
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source

MAX_BYTES = 32 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024
MAX_TASKS = 10_000


__all__ = ["ParsedPlan", "parse"]


def parse(data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
    """Parse a plan. `path` is only recorded in the findings and the plan; the text keeps a byte-order mark.

    `others` are the other plans of the phase, whose ids are taken.
    """
    text, source, problems = decoded(data, path, others)
    if problems.findings:
        return ParsedPlan(None, problems.sorted(), text)
    dialect = foreign_formats.dialect(source.lines)
    if dialect is not None:
        from idumb.markdown.plans.dialects import reader

        return reader.read(data, path, dialect, source, problems)
    head = frontmatter.read(source, problems)
    if problems.any_error and (recognized := foreign_formats.tool(source.lines)):
        return ParsedPlan(None, foreign_formats.findings(source, *recognized), text, dialect=recognized[0])
    if head is None:
        return ParsedPlan(None, problems.sorted(), text)
    scanned = blocks.scan(source, head.end_line, problems)
    _long_lines(source, head.end_line, scanned, problems)
    plan = _plan(data, path, head, scanned, problems)
    if not problems.any_error:
        return ParsedPlan(plan, problems.sorted(), text, plan)
    return ParsedPlan(None, problems.sorted(), text, plan)


def decoded(data: bytes, path: str, others: Sequence[bytes] = ()) -> tuple[str, Source, Problems]:
    """Decode a file. Return the text up to the first bad byte, and problems with the file as a whole."""
    too_large = len(data) > MAX_BYTES
    try:
        text = "" if too_large else data.decode("utf-8")
        bad = -1
    except UnicodeDecodeError as error:
        bad = error.start
        text = data[:bad].decode("utf-8")
    source = Source(text, path, others)
    problems = Problems(source)
    if too_large:
        problems.error("plan.too-large", 0, "The plan is larger than 32 MiB", accepted="at most 32 MiB", fix="split it")
    elif bad >= 0:
        message = f"The plan is not UTF-8: unexpected byte {data[bad]:#04x}"
        problems.error("plan.not-utf-8", len(text), message, accepted="UTF-8", fix="save the file as UTF-8")
    elif "\0" in text:
        problems.error(
            "plan.nul", text.index("\0"), "The plan contains a NUL character", accepted="text", fix="remove it"
        )
    return text, source, problems


def _long_lines(source: Source, first: int, scanned: list[Block], problems: Problems) -> None:
    """Report lines over 64 KiB outside step fences."""
    if max(map(len, source.lines)) <= MAX_LINE_BYTES // 4:
        return
    long = [n for n, line in enumerate(source.lines) if len(line) > MAX_LINE_BYTES // 4]
    fences = list(_step_fences(scanned))
    for n in long:
        fence = fences[at - 1] if (at := bisect_left(fences, n, key=lambda f: f.line)) else None
        if n < first or len(source.lines[n].encode()) <= MAX_LINE_BYTES or (fence and n < fence.end_line):
            continue
        message = "The line is longer than 64 KiB"
        fix = "break the line, or move the text into a file"
        accepted = "at most 64 KiB, except in step fences"
        problems.error("plan.line-too-long", source.starts[n], message, accepted=accepted, fix=fix)


def _step_fences(scanned: list[Block]) -> Iterator[Fence]:
    """Yield step fences in line order."""
    for block in scanned:
        if isinstance(block, Fence) and block.info in near_misses.STEP_FENCES:
            yield block


def _plan(data: bytes, path: str, head: Frontmatter, scanned: list[Block], problems: Problems) -> Plan:
    values: dict[str, Any] = dict(head.values)
    phase = values.get("phase")
    sections = outline.read(scanned, problems.source, phase, problems)
    context = task_reader.Context(
        phase,
        values.get("requirements", {}),
        [i.id for i in values.get("invariants", ())],
        problems,
    )
    tasks = [task for draft in sections.tasks for task in markdown_tasks.read(draft, context)]
    _whole(tasks, sections, context)
    values["success_criteria"] = _success(head, sections, problems)
    for required in frontmatter.REQUIRED[1:]:
        values.setdefault(required, "")
    sha256 = hashlib.sha256(data).hexdigest()
    return Plan(path=path, sha256=sha256, tasks=tuple(tasks), spans=head.spans, **values)


def _whole(tasks: list[Task], sections: Outline, context: task_reader.Context) -> None:
    """Check the tasks as a set: there is at least one, not too many, and no duplicate id."""
    problems = context.problems
    start = problems.source.starts[0]
    if not tasks and not sections.tasks:
        accepted = f"### {context.checker.free}: Title in a section ## Tasks"
        problems.error("plan.no-tasks", start, "The plan has no tasks", accepted=accepted, fix="write a task")
    if len(tasks) > MAX_TASKS:
        message, accepted = f"The plan has {len(tasks)} tasks", f"at most {MAX_TASKS} tasks in a phase"
        problems.error("plan.too-many-tasks", start, message, accepted=accepted)
    first: dict[str, Task] = {}
    for task in tasks:
        if task.id in first and task.span:
            line = span.line if (span := first[task.id].span) else 0
            message = f"Duplicate id {task.id}, first used on line {line}"
            fix = f"give one of them the id {context.checker.free}"
            Field("id", problems).error("task.duplicate-id", task.span.start, message, task.id, "unique ids", fix)
        if task.id:
            first.setdefault(task.id, task)


def _success(head: Frontmatter, sections: Outline, problems: Problems) -> tuple[Criterion, ...]:
    rules = criteria.Rules("success_criteria", problems, task=False)
    source = problems.source
    if sections.success is not None and head.criteria is not None:
        message = "Success criteria are given twice: in the frontmatter and in a section"
        at = source.starts[sections.success_line]
        rules.error("plan.criteria-twice", at, message, accepted="one of them", fix="keep one of them")
    drafts = head.criteria
    if drafts is None and sections.success is not None:
        drafts = criteria.from_bullets([from_item(item, source) for item in sections.success], rules)
    return criteria.settle(drafts or [], rules)
