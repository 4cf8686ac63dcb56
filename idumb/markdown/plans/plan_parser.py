"""Parse the bytes of a plan into a plan, or into findings.

`parse` never raises on its input, and returns no plan if there is an error.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans.plan import Criterion, Plan, Task
from idumb.markdown.plans import criteria, foreign_formats, frontmatter, sweep, task_reader
from idumb.markdown.plans.frontmatter import Frontmatter
from idumb.markdown.plans.outline import Outline
from idumb.markdown.syntax import blocks, tree
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.nodes import FENCE, Block
from idumb.markdown.syntax.source import Place, Source

MAX_BYTES = 32 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024
MAX_TASKS = 10_000


def parse(data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
    """Parse a plan. `path` is only recorded in the findings and the plan; the text keeps a byte-order mark.

    `others` are the other plans of the phase, whose ids are taken.
    """
    source = decoded(data, path, others)
    text = source.text
    if source.findings:
        return ParsedPlan(None, source.sorted(), text)
    dialect = foreign_formats.dialect(source.lines)
    if dialect is not None:
        from idumb.markdown.plans.dialects import reader

        _long_lines(source, 0, [])
        return reader.read(data, path, dialect, source)
    head = frontmatter.read(source)
    if head is None:
        return ParsedPlan(None, source.sorted(), text)
    scanned = blocks.scan(source, head.end_line)
    _long_lines(source, head.end_line, scanned)
    plan = _plan(data, path, head, scanned, source)
    if not source.any_error:
        return ParsedPlan(plan, source.sorted(), text, plan)
    return ParsedPlan(None, source.sorted(), text, plan)


def decoded(data: bytes, path: str, others: Sequence[bytes] = ()) -> Source:
    """Decode a file, up to the first bad byte, and report what is wrong with the file as a whole."""
    too_large = len(data) > MAX_BYTES
    try:
        text = "" if too_large else data.decode("utf-8")
        bad = -1
    except UnicodeDecodeError as error:
        bad = error.start
        text = data[:bad].decode("utf-8")
    source = Source(text, path, others)
    if too_large:
        source.report("plan.too-large", 0)
    elif bad >= 0:
        source.report("plan.not-utf-8", len(text), byte=f"{data[bad]:#04x}")
    elif "\0" in text:
        source.report("plan.nul", text.index("\0"))
    return source


def _long_lines(source: Source, first: int, scanned: list[Block]) -> None:
    """Report lines over 64 KiB outside step fences."""
    long = [n for n, line in enumerate(source.lines) if n >= first and len(line) > MAX_LINE_BYTES // 4]
    steps = [each for each in scanned if each.kind == FENCE and each.info in sweep.STEPS]
    for n in long:
        before = bisect_left(steps, n, key=lambda fence: fence.line)
        in_steps = before and n < steps[before - 1].end_line
        if not in_steps and len(source.lines[n].encode()) > MAX_LINE_BYTES:
            source.report("plan.line-too-long", source.starts[n])


def _plan(data: bytes, path: str, head: Frontmatter, scanned: list[Block], source: Source) -> Plan:
    values: dict[str, Any] = dict(head.values)
    phase = values.get("phase")
    source.prefix = f"T{phase}-" if phase else source.prefix
    outline = Outline(phase, source)
    outline.read(scanned)
    declared = {
        "requirement": tuple(sorted(values.get("requirements", ()))),
        "invariant": tuple(invariant.id for invariant in values.get("invariants", ())),
    }
    context = Place("", source, 0, phase, declared)
    tasks = [task for draft in outline.tasks for task in task_reader.read(draft, context)]
    _whole(tasks, outline, source)
    values["success_criteria"] = _success(head, outline, source)
    for required in frontmatter.REQUIRED[1:]:
        values.setdefault(required, "")
    sha256 = hashlib.sha256(data).hexdigest()
    return Plan(path=path, sha256=sha256, tasks=tuple(tasks), spans=head.spans, **values)


def _whole(tasks: list[Task], outline: Outline, source: Source) -> None:
    """Check the tasks as a set: there is at least one, not too many, and no duplicate id."""
    start = source.starts[0]
    if not tasks and not outline.tasks:
        source.report("plan.no-tasks", start)
    if len(tasks) > MAX_TASKS:
        source.report("plan.too-many-tasks", start, count=len(tasks), accepted=f"at most {MAX_TASKS} tasks in a phase")
    first: dict[str, int] = {}
    for task in tasks:
        if task.id in first and task.span:
            words = {"field": "id", "first": f"on line {first[task.id]}"}
            source.report("task.duplicate-id", task.span.start, task.id, **words)
        if task.id and task.span:
            first.setdefault(task.id, task.span.line)


def _success(head: Frontmatter, outline: Outline, source: Source) -> tuple[Criterion, ...]:
    place = Place("success_criteria", source)
    if outline.success is not None and head.criteria is not None:
        place.report("plan.criteria-twice", source.starts[outline.sections["success criteria"]])
    drafts = head.criteria
    if drafts is None and outline.success:
        items = [tree.of_item(item, source.starts) for item in outline.success]
        node = tree.Node(tree.BULLET, Text("", []), 0, 0, items)
        drafts = criteria.read(node, place, task=False)
    return criteria.settle(drafts or [], place, task=False)
