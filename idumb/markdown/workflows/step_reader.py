"""Read the steps of a workflow as tasks: the keys of each kind, what a step needs, and its condition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from idumb import lazy_pattern
from idumb.domain import paths, whole_numbers
from idumb.domain.finding import did_you_mean
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.expression import Expression, ExpressionError, Reference
from idumb.domain.plans.plan import STEPS, Criterion, FileClaim, Span, Step, Task
from idumb.domain.plans.workflow import AGENT, CONDITION, HUMAN, SCRIPT, Flow, Take, Value
from idumb.domain.proof import ledger
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import steps, task_reader
from idumb.markdown.plans.fields import Label
from idumb.markdown.plans.task_reader import Reading
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text
from idumb.markdown.workflows import value_reader

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
MOST_RETRIES = 100
_NO_KIND = "write kind: and one of these words; there are no kinds for loops or parallel steps"
_CHOSEN = "choice"
"""The output of a decision: the id of the chosen option."""


@dataclass(slots=True)
class Draft:
    """A step of the document before its keys are read: its heading and fence, and the text around the fence."""

    id: str
    title: str
    phase: str
    start: int
    end: int
    line: int
    node: Node | None
    description: str = ""


@dataclass(slots=True)
class _Step:
    """A step with its keys; `values` are those that only workflows have, as nodes."""

    draft: Draft
    kind: str
    reading: Reading
    nodes: dict[str, Node]
    outputs: tuple[Value, ...] = ()
    run: tuple[Step, ...] = ()

    @property
    def given(self) -> tuple[Value, ...]:
        """Return everything that later steps can name besides its outcome."""
        if self.kind == CONDITION:
            return (Value(workflow.RESULT, expression.BOOLEAN),)
        options = self.reading.values.get("options", ())
        return (*self.outputs, *([Value(_CHOSEN, expression.TEXT)] if options else []))


def tasks(
    drafts: list[Draft], phase: str, inputs: tuple[Value, ...], values: Mapping[str, Any], problems: Problems
) -> tuple[Task, ...]:
    """Return each step as a task; report every mistake. `values` are the inputs that are known."""
    ids = {draft.id: workflow.task_id(phase, number) for number, draft in reversed([*enumerate(drafts, 1)])}
    _unique(drafts, problems)
    context = task_reader.Context(phase, {}, problems)
    paths_of = _Paths({value.name for value in inputs}, values)
    read = [step for draft in drafts if (step := _read(draft, ids, problems, context, paths_of)) is not None]
    return _Linker(read, ids, inputs, problems, context).tasks()


def _unique(drafts: list[Draft], problems: Problems) -> None:
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.id in first:
            message = f"Duplicate step id `{draft.id}`, first used on line {first[draft.id].line}"
            place = Field("step", problems)
            place.error("workflow.duplicate-step", draft.start, message, draft.id, "unique ids", "rename one of them")
        elif draft.id:
            first[draft.id] = draft


_INPUT = lazy_pattern.compile(r"\{inputs\.([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class _Paths:
    """Replaces `{inputs.NAME}` in declared paths; `values` lacks inputs that have no value yet."""

    declared: Collection[str]
    values: Mapping[str, Any]

    def filled(self, claim: FileClaim, at: int, place: Field) -> FileClaim:
        path, target = self._path(claim.path, at, place), claim.target
        return replace(claim, path=path, target=None if target is None else self._path(target, at, place))

    def _path(self, path: str, at: int, place: Field) -> str:
        names = _INPUT.findall(path)
        unknown = next((name for name in names if name not in self.declared), None)
        if unknown is not None:
            fix = did_you_mean(unknown, self.declared, "declare it in the frontmatter")
            message = f"There is no input `{unknown}`"
            place.error("workflow.unknown-input", at, message, path, "{inputs.NAME}", fix)
        if not names or any(name not in self.values for name in names):
            return path
        text = _INPUT.sub(lambda match: workflow.shown(self.values[match[1]]), path)
        if problem := paths.problem(text):
            message = f"`{path}` becomes `{text[:80]}`, which {problem}"
            place.error("workflow.bad-path", at, message, text, "an input that makes a path in the repository")
        return text


def _read(
    draft: Draft, ids: Mapping[str, str], problems: Problems, context: task_reader.Context, paths_of: _Paths
) -> _Step | None:
    place = Field(draft.id or "step", problems)
    node = draft.node
    kind = next((v for k, v in node.pairs if k.value == "kind"), None) if is_map(node) else None
    if node is None or not is_text(kind) or kind.value not in KEYS:
        if node is not None:
            at, found = (node.start, "") if kind is None else (kind.start, value_reader.shown(kind))
            message = f"The step `{draft.id}` has " + (f"the unknown kind `{found}`" if found else "no `kind`")
            fix = did_you_mean(found, workflow.KINDS, _NO_KIND)
            place.error("workflow.bad-kind", at, message, found, ", ".join(workflow.KINDS), fix)
        return None
    keys = value_reader.mapping(node, KEYS[kind.value], place, f"the {kind.value} step `{draft.id}`") or {}
    reading = Reading("fence", ids.get(draft.id, ""), draft.title, draft.start, draft.end, draft.line)
    reading.values["description"] = draft.description
    step = _Step(draft, kind.value, reading, keys)
    _plan_fields(step, context)
    if files := reading.values.get("files"):
        at = keys["files"].start
        reading.values["files"] = tuple(paths_of.filled(claim, at, place) for claim in files)
    if "outputs" in keys:
        step.outputs = value_reader.outputs(keys["outputs"], Field("outputs", problems))
    if step.kind == SCRIPT:
        _script(step, place)
    elif step.kind == HUMAN:
        _human(step, place)
    return step


_OF_WORKFLOWS = frozenset(
    {"kind", "needs", "takes", "run", "steps", "continue_on_error", "retries", "outputs", "if", "then", "else", "ask"}
)


def _plan_fields(step: _Step, context: task_reader.Context) -> None:
    """Read the keys that tasks of plans have too."""
    keys = {key.value: key for key, _ in step.draft.node.pairs} if is_map(step.draft.node) else {}
    for name, node in step.nodes.items():
        if name not in _OF_WORKFLOWS and name[:2] != "x-":
            field = _RENAMED.get(name, name)
            label = Label(name, field, colon=True, end=0)
            task_reader.read_field(step.reading, field, label, node, keys[name].start, context)


def _script(step: _Step, place: Field) -> None:
    """Read `run`, or the tool calls under `steps`."""
    run, calls = step.nodes.get("run"), step.nodes.get("steps")
    if (run is None) == (calls is None):
        message = f"The script step `{step.draft.id}` needs either `run` or `steps`"
        place.error("workflow.no-script", step.draft.start, message, "", "run: COMMAND, or steps: a list of tool calls")
        return
    if calls is not None:
        step.run = steps.from_nodes(calls, place.problems)
        return
    assert run is not None  # noqa: S101 - one of them is set
    written = ledger.written_paths(step.reading.values.get("files"))
    arguments: dict[str, Any] = {"command": value_reader.shown(run).strip()}
    if is_list(run):
        arguments = {"argv": [value_reader.text(item, place) for item in run.items]}
    if not next(iter(arguments.values())) or is_map(run):
        accepted = "a command, or a list of arguments"
        place.error("workflow.bad-value", run.start, "`run` must be a command", value_reader.shown(run), accepted)
        return
    tolerated = _boolean(step.nodes.get("continue_on_error"), place)
    line = place.problems.source.place(run.start)[0]
    step.run = (Step(0, "run", step.draft.title, arguments, written, None, tolerated, line),)


def _boolean(node: Node | None, place: Field) -> bool:
    if node is None:
        return False
    if is_text(node) and node.value in {"true", "false"}:
        return node.value == "true"
    shown = value_reader.shown(node)
    place.error("workflow.bad-value", node.start, "`continue_on_error` must be true or false", shown, "true, false")
    return False


def _human(step: _Step, place: Field) -> None:
    node, options = step.nodes.get("ask"), step.reading.values.get("options", ())
    asks = value_reader.shown(node) if node is not None else ("decision" if options else "action")
    if asks not in _ASKS:
        at = node.start if node is not None else step.draft.start
        fix = did_you_mean(asks, _ASKS, "write one of these words")
        place.error("workflow.bad-value", at, f"`ask` cannot be `{asks}`", asks, ", ".join(_ASKS), fix)
        step.reading.bad = True
        return
    if (asks == "decision") != bool(options):
        message = "A decision needs `options`, and only a decision has them"
        place.error("workflow.no-options", step.draft.start, message, "", "options: {id: text} with ask: decision")
    step.reading.values["kind"] = _ASKS[asks]


class _Linker:
    """Connects steps: what each needs, takes and decides. Steps name one another by their ids."""

    def __init__(
        self,
        read: list[_Step],
        ids: Mapping[str, str],
        inputs: tuple[Value, ...],
        problems: Problems,
        context: task_reader.Context,
    ) -> None:
        self._steps = read
        self._ids = ids
        self._inputs = {value.name: value.expression_type for value in inputs}
        self._problems = problems
        self._context = context
        self._given = {(step.draft.id, value.name): value.expression_type for step in read for value in step.given}
        self._chosen_by: dict[str, str] = {}

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks in the order of the document."""
        flows = [self._flow(step) for step in self._steps]
        previous, linked = "", []
        for step, flow in zip(self._steps, flows, strict=True):
            linked.append(self._task(step, flow, previous))
            previous = step.reading.id
        return tuple(linked)

    def _flow(self, step: _Step) -> Flow:
        place = Field(step.draft.id, self._problems)
        flow = Flow(step.draft.id, step.kind, step.draft.phase, outputs=step.outputs)
        if "retries" in step.nodes:
            flow = replace(flow, retries=_retries(step.nodes["retries"], place))
        if "takes" in step.nodes:
            flow = replace(flow, takes=self._takes(step.nodes["takes"], place))
        if step.kind == CONDITION:
            flow = replace(flow, condition=self._condition(step, place), text=value_reader.shown(step.nodes.get("if")))
            flow = replace(flow, then=self._branch(step, "then", place), otherwise=self._branch(step, "else", place))
        return flow

    def _task(self, step: _Step, flow: Flow, previous: str) -> Task:
        place = Field(step.draft.id, self._problems)
        needs = self._named(step.nodes["needs"], place) if "needs" in step.nodes else tuple(filter(None, (previous,)))
        chooser = self._chosen_by.get(step.reading.id)
        needs += (chooser,) if chooser else ()
        needs += tuple(take.step for take in flow.takes.values())
        if flow.condition is not None:
            needs += tuple(self._ids[r[1]] for r in flow.condition.references() if r[0] == "steps")
        values = step.reading.values
        values["depends_on"] = tuple(dict.fromkeys(needs))
        values |= {"flow": flow, "steps": step.run}
        if step.kind in (SCRIPT, CONDITION) or (step.kind == AGENT and flow.outputs):
            step.reading.bad = True  # a task without criteria is fine here: idumb adds one
        task = task_reader.finished(step.reading, self._context)
        if task.files is None and (step.kind == SCRIPT or (step.kind == AGENT and flow.outputs)):
            task = replace(task, files=())
        if step.kind == CONDITION:
            task = replace(task, files=(), builder="steps")
        return replace(task, acceptance=(*task.acceptance, *_own_criterion(step, task)))

    def _named(self, node: Node, place: Field) -> tuple[str, ...]:
        """Return the tasks of a list of step ids; `none` is an empty list."""
        if is_text(node) and node.value == "none":
            return ()
        items = node.items if is_list(node) else [node]
        named = []
        for item in items:
            id = value_reader.shown(item) if is_text(item) else ""
            if id in self._ids and id:
                named.append(self._ids[id])
            else:
                fix = did_you_mean(id, filter(None, self._ids), "name a step of this workflow")
                accepted = "ids of steps, or none"
                place.error("workflow.unknown-step", item.start, f"There is no step `{id}`", id, accepted, fix)
        return tuple(named)

    def _takes(self, node: Node, place: Field) -> dict[str, Take]:
        takes: dict[str, Take] = {}
        if not is_map(node):
            accepted = "a map of variables to outputs, such as {TAG: build.tag}"
            place.error("workflow.bad-value", node.start, "`takes` must be a map", value_reader.shown(node), accepted)
            return takes
        for key, below in node.pairs:
            if not workflow.VARIABLE.fullmatch(key.value) or key.value.startswith(("IDUMB_", "INPUT_")):
                accepted = "upper-case letters, digits and `_`; not IDUMB_… or INPUT_…"
                message = f"`{key.value}` cannot name a variable of a step"
                place.error("workflow.bad-name", key.start, message, key.value, accepted)
            take = self._take(below, place)
            if take is not None:
                takes[key.value] = take
        return takes

    def _take(self, node: Node, place: Field) -> Take | None:
        source, default = node, None
        if is_map(node):
            fields = value_reader.mapping(node, ("from", "default"), place, "`takes`") or {}
            source = fields.get("from", node)
            default = value_reader.shown(fields["default"]) if "default" in fields else None
        shown = value_reader.shown(source)
        step, _, output = shown.removeprefix("steps.").partition(".")
        if (step, output) in self._given or (step in self._ids and output == workflow.OUTCOME):
            return Take(self._ids[step], output, default)
        known = [f"{step}.{output}" for step, output in self._given]
        fix = did_you_mean(shown, known, "declare it under `outputs` of that step")
        message = f"There is no output `{shown}`"
        place.error("workflow.unknown-output", source.start, message, shown, "STEP.OUTPUT of another step", fix)
        return None

    def _condition(self, step: _Step, place: Field) -> Expression | None:
        node = step.nodes.get("if")
        if not is_text(node):
            at = step.draft.start if node is None else node.start
            message = f"The condition step `{step.draft.id}` has no `if`"
            place.error("workflow.no-condition", at, message, value_reader.shown(node), "if: a condition")
            return None
        try:
            return expression.parse(node.value, self._type_of)
        except ExpressionError as wrong:
            start = node.start if node.plain else node.start + 1
            at = min(start + wrong.at, max(node.end - 1, node.start))
            place.error("workflow.bad-condition", at, str(wrong), node.value[:80], wrong.fix)
            return None

    def _type_of(self, reference: Reference) -> str | None:
        if reference[0] == "inputs":
            return self._inputs.get(reference[1])
        if reference[2] == workflow.OUTCOME:
            return expression.TEXT if reference[1] in self._ids else None
        return self._given.get((reference[1], reference[2]))

    def _branch(self, step: _Step, name: str, place: Field) -> tuple[str, ...]:
        node = step.nodes.get(name)
        if node is None and name == "then":
            message = f"The condition step `{step.draft.id}` has no `then`"
            place.error("workflow.no-condition", step.draft.start, message, "", "then: [ids of steps]")
        named = self._named(node, place) if node is not None else ()
        for task in named:
            if self._chosen_by.setdefault(task, step.reading.id) != step.reading.id or (
                name == "else" and node is not None and task in self._named_in(step, "then")
            ):
                at = node.start if node is not None else step.draft.start
                id = next(id for id, known in self._ids.items() if known == task)
                message, fix = f"`{id}` is in two branches", "nest the conditions, so that each step is in one branch"
                place.error("workflow.two-branches", at, message, id, "one branch for each step", fix)
        return named

    def _named_in(self, step: _Step, name: str) -> tuple[str, ...]:
        node = step.nodes.get(name)
        items = node.items if is_list(node) else [node]
        return tuple(self._ids.get(value_reader.shown(item), "") for item in items if item is not None)


def _retries(node: Node, place: Field) -> int | None:
    number = (
        whole_numbers.parse(node.value) if is_text(node) and node.value.isascii() and node.value.isdecimal() else None
    )
    if number is None or number > MOST_RETRIES:
        shown, accepted = value_reader.shown(node), f"a whole number up to {MOST_RETRIES}"
        place.error("workflow.bad-value", node.start, "`retries` must be a whole number", shown, accepted)
        return None
    return number


def _own_criterion(step: _Step, task: Task) -> tuple[Criterion, ...]:
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
    span = task.span or Span(0, 0, 1)
    return (Criterion(f"AC-{number}", text, STEPS, span=span),)
