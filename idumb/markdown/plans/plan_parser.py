"""From bytes to a plan or to findings: plans in Markdown, step plans, and which plans are those of other tools.

No parser raises on its input, and none returns a plan if there is an error.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.ports import ParsedPlan
from idumb.domain import wording
from idumb.domain.finding import nearest
from idumb.domain.plans import phase_ids, step_effects
from idumb.domain.plans.plan import FIRST_IDUMB, GSD, GUIDED, STEPS, STRICT, Criterion, Plan, Scope, Span, Step, Task
from idumb.markdown.plans import criteria, frontmatter, steps, task_reader
from idumb.markdown.plans.frontmatter import Frontmatter
from idumb.markdown.plans.task_finder import TaskFinder
from idumb.markdown.syntax import blocks, tree, value_types
from idumb.markdown.syntax.blocks import FENCE, Block
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Place, Source, decoded
from idumb.markdown.syntax.tree import Node, is_list, is_map
from idumb.markdown.syntax.value_types import NODE

_MAX_LINE_BYTES = 64 * 1024
MAX_TASKS = 10_000


def parse(data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
    """Parse a plan. `path` is only recorded in the findings and the plan; the text keeps a byte-order mark.

    `others` are the other plans of the phase, whose ids are taken.
    """
    source = decoded(data, path, others)
    text = source.text
    if source.findings:
        return ParsedPlan(None, source.sorted(), text)
    dialect = dialect_of(source.lines)
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
    return ParsedPlan(None if source.any_error else plan, source.sorted(), text, plan)


def _long_lines(source: Source, first: int, scanned: list[Block]) -> None:
    """Report lines over 64 KiB outside step fences."""
    long = [n for n, line in enumerate(source.lines) if n >= first and len(line) > _MAX_LINE_BYTES // 4]
    fences = [each for each in scanned if each.kind == FENCE and each.info in steps.FENCES]
    for n in long:
        before = bisect_left(fences, n, key=lambda fence: fence.line)
        in_steps = before and n < fences[before - 1].end_line
        if not in_steps and len(source.lines[n].encode()) > _MAX_LINE_BYTES:
            source.report("plan.line-too-long", source.starts[n])


def _plan(data: bytes, path: str, head: Frontmatter, scanned: list[Block], source: Source) -> Plan:
    values: dict[str, Any] = dict(head.values)
    phase = values.get("phase")
    source.prefix = f"T{phase}-" if phase else source.prefix
    finder = TaskFinder(phase, source)
    finder.read(scanned)
    declared = {
        "requirement": tuple(sorted(values.get("requirements", ()))),
        "invariant": tuple(invariant.id for invariant in values.get("invariants", ())),
    }
    context = Place("", source, 0, phase, declared)
    tasks = [task for draft in finder.tasks for task in task_reader.read(draft, context)]
    _whole(tasks, finder, source)
    values["success_criteria"] = _success(head, finder, source)
    for required in frontmatter.REQUIRED[1:]:
        values.setdefault(required, "")
    sha256 = hashlib.sha256(data).hexdigest()
    return Plan(path=path, sha256=sha256, tasks=tuple(tasks), spans=head.spans, **values)


def _whole(tasks: list[Task], finder: TaskFinder, source: Source) -> None:
    """Check the tasks as a set: there is at least one, not too many, and no duplicate id."""
    start = source.starts[0]
    if not tasks and not finder.tasks:
        source.report("plan.no-tasks", start)
    if len(tasks) > MAX_TASKS:
        source.report("plan.too-many-tasks", start, count=len(tasks), accepted=f"at most {MAX_TASKS} tasks in a phase")
    first: dict[str, int] = {}
    for task in tasks:
        if task.id in first:
            words = {"field": "id", "first": f"on line {first[task.id]}"}
            source.report("task.duplicate-id", task.span.start, task.id, **words)
        if task.id:
            first.setdefault(task.id, task.span.line)


def _success(head: Frontmatter, finder: TaskFinder, source: Source) -> tuple[Criterion, ...]:
    place = Place("success_criteria", source)
    if finder.success is not None and head.criteria is not None:
        place.report("plan.criteria-twice", source.starts[finder.sections["success criteria"]])
    drafts = head.criteria
    if drafts is None and finder.success:
        items = [blocks.value_of(item, source.starts) for item in finder.success]
        node = tree.Node(tree.BULLET, Text("", []), 0, 0, items)
        drafts = criteria.read(node, place, task=False)
    return criteria.settle(drafts or [], place, task=False)


# Step plans: YAML or JSON with `steps`, each of which becomes one task, and an optional `scope`

STEP_KEYS = {"steps": NODE._replace(accepted="a list of steps").must, "scope": frontmatter.KEYS["scope"]}
_HOUR = 60 * 60
_MARGIN = 60


def parse_steps(data: bytes, path: str) -> ParsedPlan:
    """Parse a step plan. Its path from the repository root is also its id. Never raises on its input."""
    source = decoded(data, path)
    text = source.text
    phase = phase_ids.step_plan_phase(path)
    if phase is None:
        source.report("plan.bad-name", 0, path, field="path")
    if phase is None or source.findings:
        return ParsedPlan(None, source.sorted(), text, dialect=phase_ids.STEP_PLAN)
    skipped = 1 if text.startswith("\ufeff") else 0
    read = tree.read_json if path.endswith(".json") else tree.read
    root = read(Text(text[skipped:], [(0, skipped)]), source, "plan")
    plan = _step_plan(data, path, phase, root, source)
    return ParsedPlan(None if source.any_error else plan, source.sorted(), text, plan, phase_ids.STEP_PLAN)


def _step_plan(data: bytes, path: str, phase: str, root: Node | None, source: Source) -> Plan | None:
    if not is_map(root):
        if not source.any_error:
            source.report("plan.no-steps", root.start if root is not None else 0, field="plan")
        return None
    values = value_types.read_mapping(root, STEP_KEYS, Place("", source), "the step plan")
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
        dialect=phase_ids.STEP_PLAN,
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
        phase_ids.step_task_id(phase, number),
        wording.short(title),
        step.intent if wording.short(title) != step.intent else "",
        depends_on=(phase_ids.step_task_id(phase, number - 1),) if number > 1 else (), files=claims or (),
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


# Plans of other tools that idumb reads as they are. A plan of idumb with a mistake is never read as another tool's:
# what is said in its own words decides.

_KEY = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?:[ \t]+([^#\n]*)|[ \t]*$)")
_GSD = frozenset({"wave", "files_modified", "must_haves", "autonomous"})
_OLD_IDUMB = frozenset({"phase_name", "validation_score", "validated_by", "task_count", "estimated_hours"})
_OTHER_TOOLS = frozenset({"assignee", "created_date"})
_OLD_LABEL = re.compile(r"\n[ \t]*(?:[-*][ \t]+)?\*\*Description\b", re.IGNORECASE)
_OLD_TASK = re.compile(r"\n##{1,3}[ \t]+(?:Task[ \t]+)?\[?T[\w.]*-\d+[a-z]?\b")
_NUMBERED_TASK = re.compile(
    r"\n##{1,3}[ \t]+Task[ \t]+[A-Z]*[\w.-]*?\d[\w.]*(?:[ \t]*[:.)—–-]|[ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_TASK_TAG = re.compile(r"[ \t]*<task(?:\s[^<>]*)?>")
# Keys, fields and fences that no other tool has.
_OWN_KEYS = frozenset(
    {"success_criteria", "scope", "non_goals", "invariants", "assumptions", "setup", "builder", "validator", "limits"}
)
_OWN_FIELD = re.compile(
    r"\n[ \t]*[-*+][ \t]+(?:\*\*|__)?(?:kind|change|semantic class|rollback|invariants|preconditions|postconditions"
    r"|symbols|on[ _-]failure|on[ _-]timeout|handoff[ _-]to|owns)(?::|(?:\*\*|__):)"
    r"|\n(?:`{3,}|~{3,})[ \t]*(?:yaml task|(?:yaml|json) steps)[ \t]*\n",
    re.IGNORECASE,
)


def is_ours(lines: Sequence[str], keys: Mapping[str, str] | None = None) -> bool:
    """Whether a file says anything that only a plan of idumb says, even if it lacks what such a plan needs."""
    keys = _keys(lines) if keys is None else keys
    if {"title", "goal"} <= keys.keys() or nearest(keys.get("mode", ""), (GUIDED, STRICT)):
        return True
    if keys.get("type") == "plan" and not keys.keys() & _OLD_IDUMB:
        return True
    text = _joined(lines)
    if "<task" not in text and _OWN_FIELD.search(text):
        return True
    return bool(keys.keys() & _OWN_KEYS) and len(keys.keys() & _GSD) < 2


def dialect_of(lines: Sequence[str]) -> str | None:
    """Return the dialect in which idumb reads a plan of another tool; None for its own format and all other files."""
    keys = _keys(lines)
    if keys.keys() & _OTHER_TOOLS or is_ours(lines, keys):
        return None
    if keys.keys() & _OLD_IDUMB:
        return FIRST_IDUMB
    if len(keys.keys() & _GSD) >= 2:
        return GSD
    return _by_body(lines, keys)


# What a plan begins with, and what may be one of its tasks, however it is written.
_LIKE_PLAN = re.compile(
    r"\n[^\w\n]*(?:type[\"']?[ \t]*:[ \t]*[\"']?plan\b|(?:task[^\w\n]*)?t\d[\w.]*-\d|id[\"']?[ \t]*:"
    r"|(?<=# )tasks[ \t]*$)|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:yaml|json|yml)\W*(?:task|step)",
    re.IGNORECASE | re.MULTILINE,
)


def is_note(lines: Sequence[str]) -> bool:
    """Whether a file without frontmatter has text, and nothing that a plan could have."""
    if not any(map(str.strip, lines)) or lines[0].lstrip().startswith("---"):
        return False
    return dialect_of(lines) is None and _LIKE_PLAN.search(_joined(lines)) is None


def _by_body(lines: Sequence[str], keys: Mapping[str, str]) -> str | None:
    """Return the dialect that the tasks show, or the type of the plan."""
    text = _joined(lines)
    tagged = (line for line in lines if "<task" in line) if "<task" in text else ()
    tag = next(filter(None, map(_TASK_TAG.match, tagged)), None)
    if tag is not None:
        return FIRST_IDUMB if not keys and " id=" in tag[0] else GSD
    if _OLD_TASK.search(text):  # its ids are those of idumb's own plans
        return None if keys or not _OLD_LABEL.search(text) else FIRST_IDUMB
    is_gsd = {"phase", "plan"} <= keys.keys() if keys else _NUMBERED_TASK.search(text) is not None
    return GSD if is_gsd else None


def _joined(lines: Sequence[str]) -> str:
    """Return the lines as a text in which each begins after a line break."""
    return "\n" + "\n".join(lines)


def _keys(lines: Sequence[str]) -> dict[str, str]:
    """Return the keys of the front matter with the texts after them, however they are spelled.

    Front matter that idumb would refuse, because it is indented or one line in braces, has keys too.
    """
    by_key: dict[str, str] = {}
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[start].strip() != "---":
        return by_key
    indentation = None
    for line in lines[start + 1 :]:
        text = line.strip()
        if text == "---":
            break
        indentation = len(line) - len(line.lstrip()) if indentation is None and text else indentation
        if len(line) - len(line.lstrip()) != indentation:
            continue
        for part in text.strip("{}").split(",") if text[:1] == "{" else [text]:
            if key := _KEY.match(part.strip()):
                words = (key[2] or "").strip("\"' \t\r")
                by_key.setdefault(key[1].casefold().replace("-", "_"), words.casefold())
    return by_key
