"""Parse the bytes of a plan in Markdown, or of a step plan, into a plan or into findings.

Neither parser raises on its input, and neither returns a plan if there is an error.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans import phase_ids, step_effects
from idumb.domain.plans.plan import STEPS, STRICT, Criterion, Plan, Scope, Span, Step, Task
from idumb.markdown.plans import criteria, foreign_formats, frontmatter, steps, sweep, task_reader
from idumb.markdown.plans.frontmatter import Frontmatter
from idumb.markdown.plans.outline import Outline
from idumb.markdown.syntax import blocks, record, tree
from idumb.markdown.syntax.blocks import FENCE, Block
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.record import NODE
from idumb.markdown.syntax.source import Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

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
    fences = [each for each in scanned if each.kind == FENCE and each.info in sweep.STEPS]
    for n in long:
        before = bisect_left(fences, n, key=lambda fence: fence.line)
        in_steps = before and n < fences[before - 1].end_line
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
        items = [blocks.value_of(item, source.starts) for item in outline.success]
        node = tree.Node(tree.BULLET, Text("", []), 0, 0, items)
        drafts = criteria.read(node, place, task=False)
    return criteria.settle(drafts or [], place, task=False)


# Step plans: YAML or JSON with `steps`, each of which becomes one task, and an optional `scope`

STEP_KEYS = {"steps": NODE._replace(accepted="a list of steps").must, "scope": frontmatter.KEYS["scope"]}
_LONGEST_TITLE = 120
_HOUR = 60 * 60
_MARGIN = 60


def parse_steps(data: bytes, path: str) -> ParsedPlan:
    """Parse a step plan. Its path from the repository root is also its id. Never raises on its input."""
    source = decoded(data, path)
    text = source.text
    phase = phase_ids.phase_of(path)
    if phase is None:
        source.report("plan.bad-name", 0, path, field="path")
    if phase is None or source.findings:
        return ParsedPlan(None, source.sorted(), text, dialect=phase_ids.DIALECT)
    skipped = 1 if text.startswith("\ufeff") else 0
    read = tree.read_json if path.endswith(".json") else tree.read
    root = read(text[skipped:], lambda index: index + skipped, source, "plan")
    plan = _step_plan(data, path, phase, root, source)
    return ParsedPlan(None if source.any_error else plan, source.sorted(), text, plan, phase_ids.DIALECT)


def _step_plan(data: bytes, path: str, phase: str, root: Node | None, source: Source) -> Plan | None:
    if not is_map(root):
        if not source.any_error:
            source.report("plan.no-steps", root.start if root is not None else 0, field="plan")
        return None
    values = record.record(root, STEP_KEYS, Place("", source), "the step plan")
    node, scope = values.get("steps"), values.get("scope")
    if node is None:
        return None
    valid_steps = steps.from_nodes(node, source)
    items = node.items if is_list(node) else []
    if len(items) > MAX_TASKS:
        most = f"at most {MAX_TASKS} steps, which are tasks"
        source.report("plan.too-many-tasks", node.start, field="steps", count=len(items), accepted=most)
    declared = scope or Scope()
    return Plan(
        path, hashlib.sha256(data).hexdigest(), phase, "steps", path, "Every step is done as it is declared", STRICT,
        scope=Scope(declared.root, (*declared.protected, path)),  # the plan itself is protected
        tasks=tuple(_step_task(phase, step, items[step.index], source) for step in valid_steps),
        dialect=phase_ids.DIALECT,
    )  # fmt: skip


def _step_task(phase: str, step: Step, node: Node, source: Source) -> Task:
    """Return a step as a task: its files are the claim, its result is the proof."""
    number = step.index + 1
    span = Span(node.start, node.end, step.line)
    title = " ".join(step.intent.split())
    claims = step_effects.claims(step)
    if claims is None:
        shown = str(step.arguments["patch"])[:80].partition("\n")[0]
        source.report("step.unreadable-patch", node.start, shown, field="steps")
    promise = _PROMISES[step.tool].format_map({"expect_exit": 0, **step.arguments})
    return Task(
        phase_ids.task_id(phase, number),
        title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…",
        step.intent if len(title) > _LONGEST_TITLE or title != step.intent else "",
        depends_on=(phase_ids.task_id(phase, number - 1),) if number > 1 else (), files=claims or (),
        acceptance=(Criterion("AC-1", promise, STEPS, span=span),), steps=(step,), notation="step", span=span,
        # Longer than the step's own timeout, so that `continue_on_error` still applies.
        timeout=max(_HOUR, (step.timeout or step.arguments.get("timeout") or 0) + _MARGIN),
        spans={"steps": span, "files": span},
    )  # fmt: skip


_PROMISES = {
    "run": "the command ends with exit code {expect_exit}",
    "move_file": "{from} is at {to} with the same bytes",
    "apply_patch": "the whole patch is applied",
    "write_file": "{path} has the bytes that the step gives",
    "edit_file": "{path} has the text replaced, and is otherwise as it was",
    "delete_file": "{path} is gone",
    "make_directory": "the folder {path} is there",
}
