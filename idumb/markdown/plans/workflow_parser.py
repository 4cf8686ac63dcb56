"""Parse a workflow definition, or the plan of a run: a definition followed by the run's inputs.

`parse` never raises on its input, and returns no plan if there is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from idumb.app.ports import ParsedPlan
from idumb.domain.plans import workflow
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.workflow import Value, Workflow
from idumb.markdown.plans import frontmatter, task_finder, task_reader, workflow_steps, workflow_values
from idumb.markdown.plans.workflow_steps import StepDraft
from idumb.markdown.plans.workflow_values import INPUTS
from idumb.markdown.syntax import blocks, tree, value_types
from idumb.markdown.syntax.blocks import FENCE, HEADING, Block
from idumb.markdown.syntax.source import WORKFLOW, Place, Source, decoded
from idumb.markdown.syntax.tree import Node, is_map
from idumb.markdown.syntax.value_types import DATA, ValueType, matching, scalar

STEP = "yaml step"
_STEP_HEADING = re.compile(r"([a-z][a-z0-9-]{0,63})(?:\s*:|\s+(?:—|–|--))\s+(\S.*)", re.DOTALL)
_LIKE_FENCE = re.compile(r"(?:ya?ml|json)?[\s_-]*(?:steps?|run|tasks?)", re.IGNORECASE)
_LIKE_STEP = re.compile(r"^[ \t]*[\"']?(?:kind|needs|run|agent|if)[\"']?[ \t]*:", re.MULTILINE)
_NO_LANGUAGE = frozenset({"", "yaml", "yml"})
_KEYS: Mapping[str, ValueType] = {
    "type": matching("workflow", "workflow".__eq__).must,
    "name": matching("lower-case letters, digits and `-`, starting with a letter", workflow.NAME.fullmatch).must,
    "version": frontmatter.KEYS["version"].must,
    "description": scalar("a text", lambda text: " ".join(text.split()) or None).must,
    "inputs": INPUTS,
    **{name: frontmatter.KEYS[name] for name in (
        "scope", "non_goals", "invariants", "assumptions", "setup", "builder", "validator", "limits"
    )},
}  # fmt: skip
"""The keys of the frontmatter; those after `inputs` are the same in plans."""
_RUN = {"from": DATA, "inputs": DATA}
_DEFINITION = "W0"
"""The phase of a definition that is only shown or checked."""


def parse(data: bytes, path: str, file_name: str = "") -> ParsedPlan:
    """Parse a definition, or the plan of a run if the path is that of a run.

    `file_name` is the name that the definition must have; "" if any name will do.
    """
    source = decoded(data, path, most=1)
    text = source.text
    if source.findings:
        return ParsedPlan(None, source.sorted(), text)
    node, end_line = frontmatter.nodes(source, _KEYS)
    if end_line is None:
        return ParsedPlan(None, source.sorted(), text)
    head = _head(node, source)
    name, inputs = head.pop("name", ""), head.pop("inputs", ())
    version, description = head.pop("version", ""), head.pop("description", "")
    if file_name and name and name != file_name:
        words = {"file": f"{file_name}.md", "accepted": file_name}
        source.report("workflow.other-name", source.starts[0], name, field="name", **words)
    drafts, fence = _outlined(blocks.scan(source, end_line), source)
    phase = WORKFLOW_RUNS.phase_of(path)
    values, origin = _run(fence, inputs, source, is_run=phase is not None)
    tasks = workflow_steps.tasks(drafts, phase or _DEFINITION, inputs, values, source)
    if not drafts:
        source.report("workflow.no-steps", source.starts[0], field="step")
    plan = Plan(
        path, hashlib.sha256(data).hexdigest(), phase or _DEFINITION, "01", name, description, version=version,
        dialect=workflow.DIALECT, tasks=tasks, workflow=Workflow(name, version, description, inputs, values, origin),
        **head,
    )  # fmt: skip
    return ParsedPlan(None if source.any_error else plan, source.sorted(), text)


def _head(node: Node | None, source: Source) -> dict[str, Any]:
    if node is None:
        return {}
    whole = Node(tree.MAP, node.text, source.starts[0], node.end, node.items)
    place = Place("", source, kind=WORKFLOW)
    head = value_types.read_mapping(whole, _KEYS, place, "the frontmatter", hint=workflow_values.hint)
    head.pop("type", None)
    return head


def _run(
    fence: Block | None, inputs: tuple[Value, ...], source: Source, *, is_run: bool
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the inputs of a run, with the defaults of those that it does not name, and its origin."""
    defaults = {value.name: value.default for value in inputs if value.default is not None}
    place = Place("inputs", source, kind=WORKFLOW)
    if fence is None or not is_run:
        if fence is None and is_run:
            place.report("workflow.bad-run", source.starts[0], why="The run has no inputs")
        elif fence is not None:
            place.report("workflow.bad-run", fence.start, why="Only idumb writes a fence `yaml run`", fix="remove it")
        return defaults, {}
    node = _fence_node(fence, source)
    run = value_types.read_mapping(node, _RUN, place, "the run") if is_map(node) else {}
    return _checked(inputs, run.get("inputs", {}), fence, place), run.get("from", {})


def _checked(inputs: tuple[Value, ...], given: Mapping[str, Any], fence: Block, place: Place) -> dict[str, Any]:
    declared = {value.name: value for value in inputs}
    for name in (name for name in given if name not in declared):
        place.report("workflow.unknown-input", fence.start, name, tuple(declared), accepted=", ".join(declared))
    values: dict[str, Any] = {}
    for name, value in declared.items():
        typed = workflow.from_json(value, given[name]) if name in given else value.default
        if typed is None:
            words = {"name": name, "why": f"not {value.accepted}" if name in given else "missing"}
            found = workflow.shown(given.get(name))[:80]
            place.report("workflow.bad-input", fence.start, found, accepted=value.accepted, **words)
        else:
            values[name] = typed
    return values


def _fence_node(fence: Block, source: Source) -> Node | None:
    body = fence.body(source)
    node = tree.read(body, source, "step")
    if node is None and not body.value.strip():
        source.report("workflow.empty-step", fence.start, field="step")
    return node


class _Section(NamedTuple):
    """The blocks below a heading of level 1 to 3, or above the first one, up to line `end`."""

    heading: Block | None
    blocks: list[Block]
    end: int


def _sections(document: Iterable[Block], end: int) -> list[_Section]:
    sections = [_Section(None, [], end)]
    for block in document:
        if block.kind == HEADING and block.level <= 3 and not block.indent:
            sections[-1] = sections[-1]._replace(end=block.line)
            sections.append(_Section(block, [], end))
        else:
            sections[-1].blocks.append(block)
    return sections


def _outlined(document: Iterable[Block], source: Source) -> tuple[list[StepDraft], Block | None]:
    """Return the steps and the fence of a run. Phases are headings of level 2, steps those of level 3 with a fence."""
    phase, drafts, runs = "", list[StepDraft](), list[Block]()
    for section in _sections(document, len(source.lines)):
        heading, fences = section.heading, list[Block]()
        for block in section.blocks:
            if block.kind == FENCE and block.info in (STEP, workflow.FENCE) and block.top and not block.indent:
                fences.append(block)
            else:
                _report_like_steps(block, source)
        runs += (fence for fence in fences if fence.info == workflow.FENCE)
        own = [fence for fence in fences if fence.info == STEP]
        if heading is not None and heading.level < 3:
            phase = heading.text.strip() if heading.level == 2 else ""
        is_step = heading is not None and heading.level == 3
        for fence in own[is_step:]:
            why = "The step has two fences" if is_step else "A step needs a heading of its own"
            source.report("workflow.step-without-heading", fence.start, STEP, field="step", why=why)
        if heading is not None and is_step and own:
            taken = [fence for fence in fences if fence is own[0] or fence.info == workflow.FENCE]
            drafts.append(_draft(heading, own[0], phase, (heading.end_line, section.end), taken, source))
        elif heading is not None and is_step and _STEP_HEADING.fullmatch(heading.text):
            words = {"field": "step", "id": heading.text.partition(":")[0]}
            source.report("workflow.step-without-fence", heading.start, heading.text, **words)
    for fence in runs[1:]:
        words = {"field": "step", "why": "There are two fences `yaml run`", "fix": "remove one"}
        source.report("workflow.bad-run", fence.start, fence.info, **words)
    return drafts, runs[-1] if runs else None


def _draft(
    heading: Block, fence: Block, phase: str, region: tuple[int, int], taken: list[Block], source: Source
) -> StepDraft:
    match = _STEP_HEADING.fullmatch(heading.text)
    if match is None:
        source.report("workflow.bad-heading", heading.start, heading.text, field="step")
    if not phase:
        source.report("workflow.no-phase", heading.start, heading.text, field="step")
    lines = [(each.line, each.end_line) for each in taken]
    called, title = (match[1], " ".join(match[2].split())) if match else ("", "")
    return StepDraft(
        task_finder.FENCE, "", title, heading.start, end=source.end_of(fence.end_line - 1), called=called, phase=phase,
        node=_fence_node(fence, source), place=Place(called or "step", source, heading.start, kind=WORKFLOW),
        values={"description": task_reader.lines_left(region, lines, source)},
    )  # fmt: skip


def _report_like_steps(block: Block, source: Source) -> None:
    """Report a fence that is meant as a step but is not one."""
    for inner in block.walk():
        if inner.kind != FENCE or inner.info.endswith(" example"):
            continue
        body = inner.content(source)
        like_step = inner.info.strip().casefold() in _NO_LANGUAGE and _LIKE_STEP.search(body) is not None
        if like_step or _LIKE_FENCE.fullmatch(inner.info.strip()):
            source.report("workflow.fence-near-miss", inner.start, inner.info, field="step")
