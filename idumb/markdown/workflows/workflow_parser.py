"""Parse a workflow definition, or the plan of a run: a definition followed by the run's inputs.

`parse` never raises on its input, and returns no plan if there is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from idumb import lazy_pattern
from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans import workflow
from idumb.domain.plans.numbered_phases import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.workflow import Value, Workflow
from idumb.markdown.plans import frontmatter, plan_parser, steps, sweep, task_reader
from idumb.markdown.syntax import blocks, record, tree
from idumb.markdown.syntax.nodes import Block, Fence, Heading
from idumb.markdown.syntax.problems import WORKFLOW, Place, Problems
from idumb.markdown.syntax.record import DATA, Key, matching, scalar
from idumb.markdown.syntax.tree import Node, is_map
from idumb.markdown.workflows import step_reader
from idumb.markdown.workflows.step_reader import Draft
from idumb.markdown.workflows.value_reader import INPUTS

STEP = "yaml step"
_STEP_HEADING = lazy_pattern.compile(r"([a-z][a-z0-9-]{0,63})(?:\s*:|\s+(?:—|–|--))\s+(\S.*)", re.DOTALL)
_LIKE_FENCE = lazy_pattern.compile(r"(?:ya?ml|json)?[\s_-]*(?:steps?|run|tasks?)", re.IGNORECASE)
_LIKE_STEP = lazy_pattern.compile(r"^[ \t]*[\"']?(?:kind|needs|run|agent|if)[\"']?[ \t]*:", re.MULTILINE)
_NO_LANGUAGE = frozenset({"", "yaml", "yml"})
_KEYS: Mapping[str, Key] = {
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
DEFINITION = "W0"
"""The phase of a definition that is only shown or checked."""


def parse(data: bytes, path: str, file_name: str = "") -> ParsedPlan:
    """Parse a definition, or the plan of a run if the path is that of a run.

    `file_name` is the name that the definition must have; "" if any name will do.
    """
    text, source, problems = plan_parser.decoded(data, path)
    if problems.findings:
        return ParsedPlan(None, problems.sorted(), text)
    node, end_line = frontmatter.nodes(source, problems)
    if end_line is None:
        return ParsedPlan(None, problems.sorted(), text)
    head = _head(node, problems)
    name, inputs = head.pop("name", ""), head.pop("inputs", ())
    version, description = head.pop("version", ""), head.pop("description", "")
    if file_name and name and name != file_name:
        words = {"file": f"{file_name}.md", "accepted": file_name}
        problems.report("workflow.other-name", source.starts[0], name, field="name", **words)
    outline = _Outline(problems)
    outline.read(blocks.scan(source, end_line, problems))
    phase = WORKFLOW_RUNS.phase_of(path)
    values, origin = _run(outline, inputs, problems, is_run=phase is not None)
    tasks = step_reader.tasks(outline.drafts, phase or DEFINITION, inputs, values, problems)
    if not outline.drafts:
        problems.report("workflow.no-steps", source.starts[0], field="step")
    plan = Plan(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        phase=phase or DEFINITION,
        plan="01",
        title=name,
        goal=description,
        version=version,
        dialect=workflow.DIALECT,
        tasks=tasks,
        workflow=Workflow(name, version, description, inputs, values, origin),
        **head,
    )
    return ParsedPlan(None if problems.any_error else plan, problems.sorted(), text)


def _head(node: Node | None, problems: Problems) -> dict[str, Any]:
    if node is None:
        return {}
    whole = Node(tree.MAP, node.text, problems.source.starts[0], node.end, node.items)
    place = Place("", problems, kind=WORKFLOW)
    head = record.record(whole, _KEYS, place, "the frontmatter")
    head.pop("type", None)
    return head


def _run(
    outline: _Outline, inputs: tuple[Value, ...], problems: Problems, *, is_run: bool
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the inputs of a run, with the defaults of those that it does not name, and its origin."""
    defaults = {value.name: value.default for value in inputs if value.default is not None}
    place, fence = Place("inputs", problems, kind=WORKFLOW), outline.run
    if fence is None or not is_run:
        if fence is None and is_run:
            place.report("workflow.bad-run", problems.source.starts[0], why="The run has no inputs")
        elif fence is not None:
            place.report("workflow.bad-run", fence.start, why="Only idumb writes a fence `yaml run`", fix="remove it")
        return defaults, {}
    node = _fence_node(fence, problems)
    run = record.record(node, _RUN, place, "the run") if is_map(node) else {}
    return _checked(inputs, run.get("inputs", {}), fence, place), run.get("from", {})


def _checked(inputs: tuple[Value, ...], given: Mapping[str, Any], fence: Fence, place: Place) -> dict[str, Any]:
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


def _fence_node(fence: Fence, problems: Problems) -> Node | None:
    body, at = steps.body_of(fence, problems.source)
    node = tree.read(body, at, problems, "step")
    if node is None and not body.strip():
        problems.report("workflow.empty-step", fence.start, field="step")
    return node


class _Outline:
    """Walks the top-level blocks once: phases are headings of level 2, steps headings of level 3 with a fence."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.drafts: list[Draft] = []
        self.run: Fence | None = None
        self._phase = ""
        self._heading: Heading | None = None
        self._draft: Draft | None = None
        self._taken: list[tuple[int, int]] = []

    def read(self, document: Iterable[Block]) -> None:
        for block in document:
            if isinstance(block, Heading) and block.level <= 3 and not block.indent:
                self._end(block.line)
                self._open(block)
            elif isinstance(block, Fence) and block.info == STEP and block.top and not block.indent:
                self._step(block)
            elif isinstance(block, Fence) and block.info == workflow.FENCE and block.top and not block.indent:
                self._run(block)
            else:
                self._other(block)
        self._end(len(self.problems.source.lines))

    def _open(self, heading: Heading) -> None:
        if heading.level < 3:
            self._phase = heading.text.strip() if heading.level == 2 else ""
            self._heading = None
        else:
            self._heading = heading

    def _end(self, line: int) -> None:
        """End the step that is open; report a heading that looks like one but has no fence."""
        heading, draft = self._heading, self._draft
        if draft is not None and heading is not None:
            region = (heading.end_line, line)
            draft.description = task_reader.lines_left(region, self._taken, self.problems.source)
        elif heading is not None and _STEP_HEADING.fullmatch(heading.text):
            id = heading.text.partition(":")[0]
            self._report("workflow.step-without-fence", heading.start, heading.text, id=id)
        self._draft, self._taken, self._heading = None, [], None

    def _step(self, fence: Fence) -> None:
        heading = self._heading
        if heading is None or self._draft is not None:
            why = "A step needs a heading of its own" if heading is None else "The step has two fences"
            self._report("workflow.step-without-heading", fence.start, STEP, why=why)
            return
        match = _STEP_HEADING.fullmatch(heading.text)
        if match is None:
            self._report("workflow.bad-heading", heading.start, heading.text)
        if not self._phase:
            self._report("workflow.no-phase", heading.start, heading.text)
        node = _fence_node(fence, self.problems)
        self._taken.append((fence.line, fence.end_line))
        source = self.problems.source
        self._draft = Draft(
            match[1] if match else "", " ".join(match[2].split()) if match else "", self._phase,
            heading.start, source.end_of(fence.end_line - 1), heading.line + 1, node,
        )  # fmt: skip
        self.drafts.append(self._draft)

    def _run(self, fence: Fence) -> None:
        if self.run is not None:
            words = {"why": "There are two fences `yaml run`", "fix": "remove one"}
            self._report("workflow.bad-run", fence.start, fence.info, **words)
        self.run = fence
        self._taken.append((fence.line, fence.end_line))

    def _other(self, block: Block) -> None:
        """Report a fence that is meant as a step but is not one."""
        for inner in sweep.walk(block):
            if not isinstance(inner, Fence) or inner.info.endswith(" example"):
                continue
            info = inner.info.strip()
            if _LIKE_FENCE.fullmatch(info) or (info.casefold() in _NO_LANGUAGE and self._like_step(inner)):
                self._report("workflow.fence-near-miss", inner.start, inner.info)

    def _like_step(self, fence: Fence) -> bool:
        source = self.problems.source
        body = steps.body_of(fence, source)[0] if fence.top else "\n".join(text for _, text in fence.pieces)
        return _LIKE_STEP.search(body) is not None

    def _report(self, code: str, at: int, found: str, **words: Any) -> None:
        self.problems.report(code, at, found, field="step", **words)
