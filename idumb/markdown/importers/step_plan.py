"""Read step plans in YAML or JSON: `steps` and an optional `scope`. Each step becomes one task.

Step plans are strict: unknown keys are errors.
"""

from __future__ import annotations

import hashlib

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import STEPS, STRICT, Criterion, Plan, Scope, Span, Step, Task
from idumb.markdown.plans import frontmatter, plan_parser, steps
from idumb.markdown.syntax import record, tree
from idumb.markdown.syntax.record import NODE
from idumb.markdown.syntax.source import Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

KEYS = {"steps": NODE._replace(accepted="a list of steps").must, "scope": frontmatter.KEYS["scope"]}
LONGEST_TITLE = 120
_HOUR = 60 * 60
_MARGIN = 60


def parse(data: bytes, path: str) -> ParsedPlan:
    """Parse a step plan. Its path from the repository root is also its id. Never raises on its input."""
    source = plan_parser.decoded(data, path)
    text = source.text
    phase = step_plan.phase_of(path)
    if phase is None:
        source.report("plan.bad-name", 0, path, field="path")
    if phase is None or source.findings:
        return ParsedPlan(None, source.sorted(), text, dialect=step_plan.DIALECT)
    skipped = 1 if text.startswith("\ufeff") else 0
    read = tree.read_json if path.endswith(".json") else tree.read
    root = read(text[skipped:], lambda index: index + skipped, source, "plan")
    plan = _plan(data, path, phase, root, source)
    return ParsedPlan(None if source.any_error else plan, source.sorted(), text, plan, step_plan.DIALECT)


def _plan(data: bytes, path: str, phase: str, root: Node | None, source: Source) -> Plan | None:
    if not is_map(root):
        if not source.any_error:
            source.report("plan.no-steps", root.start if root is not None else 0, field="plan")
        return None
    values = record.record(root, KEYS, Place("", source), "the step plan")
    node, scope = values.get("steps"), values.get("scope")
    if node is None:
        return None
    valid_steps = steps.from_nodes(node, source)
    items = node.items if is_list(node) else []
    if len(items) > plan_parser.MAX_TASKS:
        most = f"at most {plan_parser.MAX_TASKS} steps, which are tasks"
        source.report("plan.too-many-tasks", node.start, field="steps", count=len(items), accepted=most)
    declared = scope or Scope()
    return Plan(
        path, hashlib.sha256(data).hexdigest(), phase, "steps", path, "Every step is done as it is declared", STRICT,
        scope=Scope(declared.root, (*declared.protected, path)),  # the plan itself is protected
        tasks=tuple(_task(phase, step, items[step.index], source) for step in valid_steps), dialect=step_plan.DIALECT,
    )  # fmt: skip


def _task(phase: str, step: Step, node: Node, source: Source) -> Task:
    """Return a step as a task: its files are the claim, its result is the proof."""
    number = step.index + 1
    span = Span(node.start, node.end, step.line)
    title = " ".join(step.intent.split())
    claims = step_plan.claims(step)
    if claims is None:
        shown = str(step.arguments["patch"])[:80].partition("\n")[0]
        source.report("step.unreadable-patch", node.start, shown, field="steps")
    promise = _PROMISES[step.tool].format_map({"expect_exit": 0, **step.arguments})
    return Task(
        step_plan.task_id(phase, number),
        title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…",
        step.intent if len(title) > LONGEST_TITLE or title != step.intent else "",
        depends_on=(step_plan.task_id(phase, number - 1),) if number > 1 else (), files=claims or (),
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
