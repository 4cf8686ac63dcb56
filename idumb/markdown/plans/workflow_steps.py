"""Read the steps of a workflow as tasks: the keys of each kind, what a step needs, and its condition."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import paths
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.expression import Expression, ExpressionError, Reference
from idumb.domain.plans.plan import STEPS, Criterion, FileClaim, Step, Task
from idumb.domain.plans.workflow import AGENT, CONDITION, HUMAN, SCRIPT, Flow, Take, Value
from idumb.domain.proof import ledger
from idumb.markdown.plans import steps, task_finder, task_reader, workflow_values
from idumb.markdown.plans.workflow_values import OUTPUTS
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.source import Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text
from idumb.markdown.syntax.value_types import ANY, BOOLEAN, NODE, ValueType, choice, integer, matching

_ALL = ("kind", "needs", "takes", "handoff_to", "priority", "preconditions", "notes", "references")
_WORK = (
    "files", "acceptance", "verify", "tests", "postconditions", "change", "limits", "rollback", "estimate", "timeout",
    "timeout_action", "retries", "outputs", "validator",
)  # fmt: skip
KEYS: Mapping[str, tuple[str, ...]] = {
    SCRIPT: (*_ALL, "run", "steps", "continue_on_error", *_WORK),
    AGENT: (*_ALL, "agent", "symbols", "interfaces", *_WORK),
    CONDITION: (*_ALL[:3], "if", "then", "else"),
    HUMAN: (*_ALL, "ask", "options", "acceptance", "timeout", "timeout_action"),
}
"""The keys of each kind of step."""
_RENAMED = {"timeout_action": "on_timeout", "agent": "builder"}
_ASKS = {"action": "human-action", "verify": "human-verify", "decision": "decision"}
_MOST_RETRIES = 100
_VARIABLE = matching(
    "upper-case letters, digits and `_`; not IDUMB_… or INPUT_…",
    lambda text: workflow.VARIABLE.fullmatch(text) and not text.startswith(("IDUMB_", "INPUT_")),
)._replace(code="bad-name")
_CHOSEN = "choice"
"""The output of a decision: the id of the chosen option."""


def _run(node: Node, place: Place) -> dict[str, Any]:
    """Return the arguments of the tool `run`."""
    if is_list(node) and node.items:
        return {"argv": list(value_types.TEXTS.read(node, place))}
    return {"command": value_types.TEXT.read(node, place)}


_OF_TASK = ValueType("a value", lambda node, place: (node, place.at))
_OWN: Mapping[str, ValueType] = {
    **dict.fromkeys(("kind", "needs", "takes", "if", "then", "else"), NODE),
    "run": ValueType("a command, or a list of arguments", _run),
    "steps": ValueType("a list of tool calls", lambda node, place: steps.from_nodes(node, place.source)),
    "continue_on_error": BOOLEAN,
    "retries": integer(0, _MOST_RETRIES),
    "outputs": OUTPUTS,
    "ask": choice(*_ASKS),
}
"""The keys that tasks of plans do not have."""


class StepDraft(task_finder.TaskDraft, kw_only=True):
    """A step in progress: `called` is its id in the document, `id` that of its task, `phase` the title of its phase.

    `node` are its keys, `given` the values of those that only workflows have, `run` its tool calls.
    """

    phase: str
    node: Node | None
    place: Place
    kind: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    run: tuple[Step, ...] = ()

    def has(self, name: str) -> bool:
        return tree.find(self.node, name) is not None

    @property
    def outputs(self) -> tuple[Value, ...]:
        declared: tuple[Value, ...] = self.given.get("outputs", ())
        return declared

    @property
    def results(self) -> tuple[Value, ...]:
        """Return everything that later steps can name besides its outcome."""
        if self.kind == CONDITION:
            return (Value(workflow.RESULT, expression.BOOLEAN),)
        return (*self.outputs, *([Value(_CHOSEN, expression.TEXT)] if self.values.get("options") else []))


def tasks(
    drafts: list[StepDraft], phase: str, inputs: tuple[Value, ...], values: Mapping[str, Any], source: Source
) -> tuple[Task, ...]:
    """Return each step as a task; report every mistake. `values` are the inputs that are known."""
    first: dict[str, StepDraft] = {}
    for number, step in enumerate(drafts, 1):
        own = first.setdefault(step.called, step)
        step.id = own.id = own.id or workflow.task_id(phase, number)
        if own is not step and step.called:
            line = source.line_number(own.start)
            source.report("workflow.duplicate-step", step.start, step.called, field="step", first=line)
    paths_of = _Paths({value.name for value in inputs}, values)
    read = [step for step in drafts if _read(step, paths_of)]
    return _Linker(read, {name: step.id for name, step in first.items()}, inputs).tasks()


_INPUT = re.compile(r"\{inputs\.([a-z][a-z0-9_]*)\}")


class _Paths(Struct, frozen=True):
    """Replaces `{inputs.NAME}` in declared paths; `values` lacks inputs that have no value yet."""

    declared: Collection[str]
    values: Mapping[str, Any]

    def filled(self, claim: FileClaim, at: int, place: Place) -> FileClaim:
        path, target = self._path(claim.path, at, place), claim.target
        return replace(claim, path=path, target=None if target is None else self._path(target, at, place))

    def _path(self, path: str, at: int, place: Place) -> str:
        names = _INPUT.findall(path)
        unknown = next((name for name in names if name not in self.declared), None)
        if unknown is not None:
            place.report("workflow.unknown-input", at, unknown, tuple(self.declared), accepted="{inputs.NAME}")
        if not names or any(name not in self.values for name in names):
            return path
        text = _INPUT.sub(lambda match: workflow.shown(self.values[match[1]]), path)
        if problem := paths.problem(text):
            place.report("workflow.bad-path", at, text, path=path, shown=text[:80], problem=problem)
        return text


def _read(step: StepDraft, paths_of: _Paths) -> bool:
    """Read the keys of a step, most of which tasks of plans have too. Return whether its kind is known."""
    place, node = step.place, step.node
    if node is None:
        return False
    kind = tree.find(node, "kind")
    if not is_text(kind) or kind.value not in KEYS:
        found = value_types.shown(kind, place) if kind is not None else ""
        place.report("workflow.bad-kind", kind.start if kind else node.start, found, workflow.KINDS, id=step.called)
        return False
    step.kind = kind.value
    keys = {name: _OWN.get(name, _OF_TASK) for name in KEYS[step.kind]}
    owner = f"the {step.kind} step `{step.called}`"
    for name, value in value_types.read_mapping(node, keys, place, owner, hint=workflow_values.hint).items():
        if name in _OWN:
            step.given[name] = value
        else:
            task_reader.read_field(step, _RENAMED.get(name, name), name, value[0], value[1], place)
    if files := step.values.get("files"):
        at = tree.key_offset(node, "files")
        step.values["files"] = tuple(paths_of.filled(claim, at, place) for claim in files)
    if step.kind == SCRIPT:
        _script(step, node)
    elif step.kind == HUMAN:
        _human(step)
    return True


def _script(step: StepDraft, node: Node) -> None:
    """Read `run`, or the tool calls under `steps`."""
    if step.has("run") == step.has("steps"):
        step.place.report("workflow.no-script", step.start, id=step.called)
    elif arguments := step.given.get("run"):
        written = ledger.written_paths(step.values.get("files"))
        run, tolerated = tree.find(node, "run"), step.given.get("continue_on_error", False)
        line = step.place.source.line_number(run.start if run else 0)
        step.run = (Step(0, "run", step.title, arguments, written, None, tolerated, line),)
    else:
        step.run = step.given.get("steps", ())


def _human(step: StepDraft) -> None:
    options = step.values.get("options", ())
    asks = step.given.get("ask", "decision" if options else "action")
    if (asks == "decision") != bool(options) and ("ask" in step.given or not step.has("ask")):
        step.place.report("workflow.no-options", step.start)
    step.values["kind"] = _ASKS[asks]


class _Linker:
    """Connects steps: what each needs, takes and decides. Steps name one another by their ids."""

    def __init__(self, read: list[StepDraft], ids: Mapping[str, str], inputs: tuple[Value, ...]) -> None:
        self._steps, self._ids = read, ids
        self._inputs = {value.name: value.expression_type for value in inputs}
        self._given = {(step.called, value.name): value.expression_type for step in read for value in step.results}
        self._chosen_by: dict[str, tuple[str, str]] = {}  # the condition of a task, and its key

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks in the order of the document."""
        flows = [self._flow(step) for step in self._steps]  # all of them first: a branch names other steps
        before = ["", *(step.id for step in self._steps)]
        return tuple(map(self._task, self._steps, flows, before))

    def _flow(self, step: StepDraft) -> Flow:
        given = step.given
        flow = Flow(step.called, step.kind, step.phase, given.get("retries"), outputs=step.outputs)
        if "takes" in given:
            takes = value_types.read_value(self._takes, given["takes"], step.place.inner("takes", 0))
            flow = replace(flow, takes=takes or {})
        if step.kind == CONDITION:
            text = value_types.shown(given["if"], step.place) if "if" in given else ""
            flow = replace(flow, condition=self._condition(step), text=text)
            flow = replace(flow, then=self._branch(step, "then"), otherwise=self._branch(step, "else"))
        return flow

    def _task(self, step: StepDraft, flow: Flow, previous: str) -> Task:
        needs = tuple(filter(None, (previous,)))
        needs = self._named(step.given["needs"], step.place) if "needs" in step.given else needs
        chooser = self._chosen_by.get(step.id)
        needs += (chooser[0],) if chooser else ()
        needs += tuple(take.step for take in flow.takes.values())
        if flow.condition is not None:
            needs += tuple(self._ids[r[1]] for r in flow.condition.references() if r[0] == "steps")
        values = step.values
        values["depends_on"] = tuple(dict.fromkeys(needs))
        values |= {"flow": flow, "steps": step.run}
        if step.kind in (SCRIPT, CONDITION) or (step.kind == AGENT and flow.outputs):
            step.bad = True  # a task without criteria is fine here: idumb adds one
        task = task_reader.finished(step, step.place)
        if task.files is None and (step.kind == SCRIPT or (step.kind == AGENT and flow.outputs)):
            task = replace(task, files=())
        if step.kind == CONDITION:
            task = replace(task, files=(), builder="steps")
        return replace(task, acceptance=(*task.acceptance, *_own_criterion(step, task)))

    def _named(self, node: Node, place: Place) -> tuple[str, ...]:
        """Return the tasks of a list of step ids; `none` is an empty list."""
        if is_text(node) and node.value == "none":
            return ()
        known = tuple(filter(None, self._ids))
        found = [(item, item.value if is_text(item) else "") for item in (node.items if is_list(node) else [node])]
        for item, id in found:
            if id not in known:
                place.report("workflow.unknown-step", item.start, id, known, accepted="ids of steps, or none")
        return tuple(self._ids[id] for _, id in found if id in known)

    @property
    def _takes(self) -> ValueType:
        """Return the type of a map of variables to outputs."""
        taken = value_types.mapping_of(ValueType("STEP.OUTPUT of another step", self._take), _VARIABLE)
        return taken._replace(accepted="a map of variables to outputs, such as {TAG: build.tag}")

    def _take(self, node: Node, place: Place) -> Take | None:
        source, default = node, None
        if is_map(node):
            keys = {"from": NODE.must, "default": ANY}
            given = value_types.read_mapping(node, keys, place, "`takes`", hint=workflow_values.hint)
            source, default = given.get("from", node), given.get("default")
        shown = value_types.shown(source, place)
        step, _, output = shown.removeprefix("steps.").partition(".")
        if (step, output) in self._given or (step in self._ids and output == workflow.OUTCOME):
            return Take(self._ids[step], output, default)
        known = tuple(f"{step}.{output}" for step, output in self._given)
        words = {"accepted": "STEP.OUTPUT of another step"}
        place.report("workflow.unknown-output", source.start, shown, known, **words)
        return None

    def _condition(self, step: StepDraft) -> Expression | None:
        node = step.given.get("if")
        if not is_text(node):
            words = {"id": step.called, "key": "if", "accepted": "if: a condition"}
            step.place.report("workflow.no-condition", step.start if node is None else node.start, **words)
            return None
        try:
            return expression.parse(node.value, self._type_of)
        except ExpressionError as wrong:
            start = node.start if node.plain else node.start + 1
            at = min(start + wrong.at, max(node.end - 1, node.start))
            words = {"why": str(wrong), "accepted": wrong.fix}
            step.place.report("workflow.bad-condition", at, node.value[:80], **words)
            return None

    def _type_of(self, reference: Reference) -> str | None:
        if reference[0] == "inputs":
            return self._inputs.get(reference[1])
        if reference[2] == workflow.OUTCOME:
            return expression.TEXT if reference[1] in self._ids else None
        return self._given.get((reference[1], reference[2]))

    def _branch(self, step: StepDraft, name: str) -> tuple[str, ...]:
        node = step.given.get(name)
        if node is None:
            if name == "then":
                words = {"id": step.called, "key": name, "accepted": "then: [ids of steps]"}
                step.place.report("workflow.no-condition", step.start, **words)
            return ()
        named = self._named(node, step.place)
        for task in named:
            own = (step.id, name)
            if self._chosen_by.setdefault(task, own) != own:
                id = next(id for id, known in self._ids.items() if known == task)
                step.place.report("workflow.two-branches", node.start, id)
        return named


def _own_criterion(step: StepDraft, task: Task) -> tuple[Criterion, ...]:
    """Return the criterion that idumb itself proves: the script ended well, the condition or the outputs hold."""
    if step.kind == CONDITION:
        text = "the condition is decided"
    elif step.kind == SCRIPT:
        text = "the script ends with exit code 0" + (", and gives its outputs" if step.outputs else "")
    elif step.outputs:
        text = "the answer has the declared outputs"
    else:
        return ()
    number = max((int(c.id[3:]) for c in task.acceptance if c.id[3:].isdecimal()), default=0) + 1
    return (Criterion(f"AC-{number}", text, STEPS, span=task.span),)
