"""Parse a workflow definition, or the plan of a run: a definition followed by the run's inputs.

`parse` never raises on its input, and returns no plan if there is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.app.ports.planning import ParsedPlan
from idumb.domain.finding import did_you_mean
from idumb.domain.plans import workflow
from idumb.domain.plans.numbered_phases import WORKFLOW_RUNS
from idumb.domain.plans.plan import Plan
from idumb.domain.plans.workflow import Value, Workflow
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import frontmatter, plan_parser, steps, sweep, task_reader
from idumb.markdown.syntax import blocks, tree
from idumb.markdown.syntax.nodes import Block, Fence, Heading
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.tree import Node
from idumb.markdown.workflows import foreign_keys, step_reader, value_reader
from idumb.markdown.workflows.step_reader import Draft

STEP = "yaml step"
_STEP_HEADING = lazy_pattern.compile(r"([a-z][a-z0-9-]{0,63})(?:\s*:|\s+(?:—|–|--))\s+(\S.*)", re.DOTALL)
_LIKE_FENCE = lazy_pattern.compile(r"(?:ya?ml|json)?[\s_-]*(?:steps?|run|tasks?)", re.IGNORECASE)
_LIKE_STEP = lazy_pattern.compile(r"^[ \t]*[\"']?(?:kind|needs|run|agent|if)[\"']?[ \t]*:", re.MULTILINE)
_NO_LANGUAGE = frozenset({"", "yaml", "yml"})
_VERSION = lazy_pattern.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,63}")
_SHARED = ("scope", "non_goals", "invariants", "assumptions", "setup", "builder", "validator", "limits")
"""Keys of the frontmatter that plans have too, with the same values."""
_OWN = ("type", "name", "version", "description", "inputs")
_REQUIRED = _OWN[:4]
_FORM = "### step-id: Title, and a fence `yaml step` below it"
DEFINITION = "W0"
"""The phase of a definition that is only shown or checked."""


@dataclass(slots=True)
class _Head:
    """The values of the frontmatter; `shared` are those that plans have too."""

    name: str = ""
    version: str = ""
    description: str = ""
    inputs: tuple[Value, ...] = ()
    shared: dict[str, Any] = field(default_factory=dict)


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
    if file_name and head.name and head.name != file_name:
        message, fix = f"The workflow is named `{head.name}`, and its file {file_name}.md", "rename one of them"
        problems.error("workflow.other-name", source.starts[0], message, field="name", found=head.name,
                       accepted=file_name, fix=fix)  # fmt: skip
    outline = _Outline(problems)
    outline.read(blocks.scan(source, end_line, problems))
    phase = WORKFLOW_RUNS.phase_of(path)
    values, origin = _run(outline, head, problems, is_run=phase is not None)
    tasks = step_reader.tasks(outline.drafts, phase or DEFINITION, head.inputs, values, problems)
    if not outline.drafts:
        message = "The workflow has no steps"
        problems.error("workflow.no-steps", source.starts[0], message, accepted=_FORM, fix="write a step")
    plan = Plan(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        phase=phase or DEFINITION,
        plan="01",
        title=head.name,
        goal=head.description,
        version=head.version,
        dialect=workflow.DIALECT,
        tasks=tasks,
        workflow=Workflow(head.name, head.version, head.description, head.inputs, values, origin),
        **head.shared,
    )
    return ParsedPlan(None if problems.any_error else plan, problems.sorted(), text)


def _head(node: Node | None, problems: Problems) -> _Head:
    head, keys = _Head(), (*_OWN, *_SHARED)
    pairs = node.pairs if node is not None else []
    for key, below in pairs:
        if key.value in _SHARED:
            value = frontmatter.value_of(key.value, below, problems)
            if value is not None:
                head.shared[key.value] = value
        elif key.value in _OWN:
            _own(head, key.value, below, Field(key.value, problems))
        elif key.value[:2] != "x-":
            message, fix = f"Unknown key `{key.value}`", foreign_keys.fix(key.value, keys)
            place = Field(key.value, problems)
            place.error("workflow.unknown-key", key.start, message, key.value, ", ".join(keys), fix)
    present = {key.value for key, _ in pairs}
    for name in _REQUIRED:
        if name not in present and node is not None:
            message = f"The frontmatter has no `{name}`"
            place = Field(name, problems)
            place.error("workflow.missing-key", problems.source.starts[0], message, "", name, f"add {name}:")
    return head


def _own(head: _Head, name: str, node: Node, place: Field) -> None:
    if name == "inputs":
        head.inputs = value_reader.inputs(node, place)
        return
    text = value_reader.text(node, place)
    valid = {
        "type": (text == "workflow", "workflow"),
        "name": (bool(workflow.NAME.fullmatch(text)), "lower-case letters, digits and `-`, starting with a letter"),
        "version": (bool(_VERSION.fullmatch(text)), "a version such as 2 or 1.4.0, of at most 64 characters"),
        "description": (True, "a text"),
    }[name]
    if text and not valid[0]:
        place.error("workflow.bad-value", node.start, f"`{name}` must be {valid[1]}", text, valid[1])
    elif name != "type":
        setattr(head, name, " ".join(text.split()) if name == "description" else text)


def _run(
    outline: _Outline, head: _Head, problems: Problems, *, is_run: bool
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the inputs of a run, with the defaults of those that it does not name, and its origin."""
    defaults = {value.name: value.default for value in head.inputs if value.default is not None}
    place, fence = Field("inputs", problems), outline.run
    if fence is None or not is_run:
        if (fence is None) == is_run:
            at = problems.source.starts[0] if fence is None else fence.start
            message = "The run has no inputs" if is_run else "Only idumb writes a fence `yaml run`"
            fix = "start the workflow again with idumb workflow run" if is_run else "remove it"
            place.error("workflow.bad-run", at, message, "", "a fence `yaml run` at the end of a run's plan", fix)
        return defaults, {}
    node = _fence_node(fence, problems)
    values = value_reader.mapping(node, ("from", "inputs"), place, "the run") if node is not None else None
    given = value_reader.plain(values["inputs"]) if values and "inputs" in values else {}
    origin = value_reader.plain(values["from"]) if values and "from" in values else {}
    if not isinstance(given, dict) or not isinstance(origin, dict):
        place.error("workflow.bad-run", fence.start, "`from` and `inputs` must be mappings", "", "mappings")
        return defaults, {}
    return _checked(head, given, fence, place), origin


def _checked(head: _Head, given: Mapping[str, Any], fence: Fence, place: Field) -> dict[str, Any]:
    declared = {value.name: value for value in head.inputs}
    for name in (name for name in given if name not in declared):
        fix = did_you_mean(name, declared, "remove it")
        place.error("workflow.unknown-input", fence.start, f"Unknown input `{name}`", name, ", ".join(declared), fix)
    values: dict[str, Any] = {}
    for name, value in declared.items():
        typed = workflow.from_json(value, given[name]) if name in given else value.default
        if typed is None:
            message = f"The input `{name}` is {'not ' + value.accepted if name in given else 'missing'}"
            found = workflow.shown(given.get(name))[:80]
            place.error("workflow.bad-input", fence.start, message, found, value.accepted)
        else:
            values[name] = typed
    return values


def _fence_node(fence: Fence, problems: Problems) -> Node | None:
    body, at = steps.body_of(fence, problems.source)
    node = tree.read(body, at, problems, "step")
    if node is None and not body.strip():
        problems.error("workflow.empty-step", fence.start, "The fence is empty", accepted="kind: and other keys")
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
            message = f"The step `{heading.text.partition(':')[0]}` has no fence `{STEP}`"
            fix = "add the fence, or change the heading if it is only text"
            self._error("workflow.step-without-fence", heading.start, message, heading.text, fix)
        self._draft, self._taken, self._heading = None, [], None

    def _step(self, fence: Fence) -> None:
        heading = self._heading
        if heading is None or self._draft is not None:
            message = "A step needs a heading of its own" if heading is None else "The step has two fences"
            self._error("workflow.step-without-heading", fence.start, message, STEP, f"write {_FORM}")
            return
        match = _STEP_HEADING.fullmatch(heading.text)
        if match is None:
            fix = "write ### and an id of lower-case letters, digits and `-`, a colon and a title"
            self._error("workflow.bad-heading", heading.start, "The heading of a step needs an id and a title",
                        heading.text, fix)  # fmt: skip
        if not self._phase:
            message, fix = "The step is in no phase", "write a heading of level 2 above it, such as ## Build"
            self._error("workflow.no-phase", heading.start, message, heading.text, fix)
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
            self._error("workflow.bad-run", fence.start, "There are two fences `yaml run`", fence.info, "remove one")
        self.run = fence
        self._taken.append((fence.line, fence.end_line))

    def _other(self, block: Block) -> None:
        """Report a fence that is meant as a step but is not one."""
        for inner in sweep.walk(block):
            if not isinstance(inner, Fence) or inner.info.endswith(" example"):
                continue
            info = inner.info.strip()
            if _LIKE_FENCE.fullmatch(info) or (info.casefold() in _NO_LANGUAGE and self._like_step(inner)):
                message = f"`{info}` is not a fence of a step" if info else "This fence looks like a step"
                fix = f"write ```{STEP} in the first column, or add the word example"
                self._error("workflow.fence-near-miss", inner.start, message, inner.info, fix)

    def _like_step(self, fence: Fence) -> bool:
        source = self.problems.source
        body = steps.body_of(fence, source)[0] if fence.top else "\n".join(text for _, text in fence.pieces)
        return _LIKE_STEP.search(body) is not None

    def _error(self, code: str, at: int, message: str, found: str, fix: str) -> None:
        Field("step", self.problems).error(code, at, message, found, _FORM, fix)
