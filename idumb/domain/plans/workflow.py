"""Workflows: definitions of work with inputs, phases and steps. A run is a plan that holds the definition's bytes.

The phase of the third run is `W3`, the task of its second step `TW3-02`, its folder `.planning/workflows/003-release`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, convert, field
from msgspec.structs import replace

from idumb.domain import replies
from idumb.domain.plans.expression import BOOLEAN, INTEGER, LIST, NUMBER, TEXT, Expression, evaluate

if TYPE_CHECKING:
    from idumb.domain.finding import Finding
    from idumb.domain.plans.plan import Task

DIALECT = "workflow"
PLAN = "01-PLAN.md"
DEFINITIONS = ".idumb/workflows"

AGENT, SCRIPT, CONDITION, HUMAN = "agent", "script", "condition", "human"
KINDS = (AGENT, SCRIPT, CONDITION, HUMAN)
CHOICE = "choice"
INPUT_TYPES = (TEXT, INTEGER, NUMBER, BOOLEAN, CHOICE)
OUTPUT_TYPES = (*INPUT_TYPES, LIST)
OUTCOME, RESULT = "outcome", "result"
"""What every step has, and what a condition has besides."""

LONGEST_VALUE = 4096
MOST_TEXT = 64 * 1024
"""Characters of an input, and bytes of a text that a step gives out."""

NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
VALUE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TASK = re.compile(r"TW[0-9]+-[0-9]{2,}")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,2})?")  # also what Python prints


class Value(Struct, frozen=True):
    """A typed value that a definition declares: an input, or an output of a step. `choices` is set only for `choice`.

    - `default`: the value of an input that nobody gives; None if it is required.
    - `file`: the file that holds an output, `key` the key of its JSON object; "" for the answer or what is printed.
    """

    name: str
    type: str
    description: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    file: str = ""
    key: str = ""
    line: int = 0

    @property
    def expression_type(self) -> str:
        return TEXT if self.type == CHOICE else self.type

    @property
    def accepted(self) -> str:
        """Return what the value may be, in words."""
        if self.type == CHOICE:
            return f"one of {', '.join(self.choices)}"
        return {TEXT: "a text", INTEGER: "an integer", NUMBER: "a number", BOOLEAN: "true or false"}.get(
            self.type, "a list of texts"
        )


class Take(Struct, frozen=True):
    """A variable of a step: an output of an earlier step. `default` replaces it if that step was omitted."""

    step: str
    output: str
    default: str | None = None


class Flow(Struct, frozen=True):
    """What a task of a workflow has besides other tasks. Steps are named by their ids in the definition.

    - `phase`: the title of its phase. `retries`: attempts after the first; None if the configuration decides.
    - `condition`, `text`: the condition that it decides, and its text. `then`, `otherwise`: the tasks that it chooses.
    - `takes`: outputs of earlier tasks, by environment variable.
    """

    step: str
    kind: str
    phase: str
    retries: int | None = None
    condition: Expression | None = None
    text: str = ""
    then: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    takes: Mapping[str, Take] = field(default_factory=dict)
    outputs: tuple[Value, ...] = ()


class Workflow(Struct, frozen=True):
    """The head of a definition. `values` are the inputs of a run, `origin` what it was started from."""

    name: str
    version: str
    description: str
    inputs: tuple[Value, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that hold the inputs: `INPUT_VERSION` for `version`."""
        return {f"INPUT_{name.upper()}": shown(value) for name, value in self.values.items()}


def task_id(phase: str, number: int) -> str:
    """Return the task of step `number`, counted from 1."""
    return f"T{phase}-{number:02d}"


FENCE = "yaml run"
_RUN_PART = f"\n## Run\n\n```{FENCE}\n".encode()


def run_part(definition: bytes, workflow: Mapping[str, str], values: Mapping[str, Any], handoff: str = "") -> bytes:
    """Return the bytes of a run's plan: the definition, then its origin and inputs as JSON, which is valid YAML.

    `workflow` has the definition's `sha256` and `origin` (repository, user or program). People commit the plan, so it
    has no path of this machine.
    """
    origin = {**workflow, **({"handoff": handoff} if handoff else {})}
    body = f"from: {_json(origin)}\ninputs: {_json(dict(values))}\n"
    gap = b"" if definition.endswith(b"\n") else b"\n"
    return definition + gap + _RUN_PART + f"{body}```\n".encode()


def is_pinned(definition: bytes, plan: bytes) -> bool:
    """Return whether the plan of a run holds the bytes of this definition, and not those of another one."""
    pinned, part, _ = plan.rpartition(_RUN_PART)
    return bool(part) and pinned.rstrip(b"\n") == definition.rstrip(b"\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def shown(value: Any) -> str:
    """Return a value as the text of an environment variable: lists as JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _json(value) if isinstance(value, list | tuple) else str(value)


def from_text(declared: Value, text: str) -> Any:
    """Return the typed value of a text; None if it is not valid."""
    if len(text) > LONGEST_VALUE:
        return None
    value: Any = text
    if declared.type == INTEGER:
        value = int(text) if _INTEGER.fullmatch(text) else None
    elif declared.type == NUMBER:
        value = float(text) if _NUMBER.fullmatch(text) else None
    elif declared.type == BOOLEAN:
        value = {"true": True, "false": False}.get(text)
    return from_json(declared, value)


_Text = Annotated[str, Meta(max_length=MOST_TEXT, pattern=r"\A[^\0\ud800-\udfff]*\Z")]
"""A text that an environment variable can hold."""
_FORMS: Mapping[str, Any] = {
    TEXT: _Text, CHOICE: _Text, LIST: list[_Text], BOOLEAN: bool,
    INTEGER: Annotated[int, Meta(gt=-(10**18), lt=10**18)], NUMBER: Annotated[float, Meta(gt=-1e18, lt=1e18)],
}  # fmt: skip


def from_json(declared: Value, value: Any) -> Any:
    """Return a value of parsed JSON as the declared type; None if it has another type."""
    try:
        typed = convert(value, _FORMS[declared.type])
    except ValueError:  # half of a character is one too
        return None
    return typed if declared.type != CHOICE or typed in declared.choices else None


def schema(outputs: Iterable[Value]) -> dict[str, Any]:
    """Return the JSON Schema of an agent's answer with these outputs."""
    types = {LIST: replies.list_of(replies.TEXT), TEXT: replies.TEXT}
    properties: dict[str, Any] = {}
    for output in outputs:
        kind = types.get(output.expression_type, {"type": output.type})
        more = {"enum": list(output.choices), "description": output.description}
        properties[output.name] = {**kind, **{name: value for name, value in more.items() if value}}
    return replies.object_of(**properties)


def by_steps(findings: Iterable[Finding], tasks: Iterable[Task]) -> list[Finding]:
    """Return findings that name steps as the definition does."""
    steps = {task.id: task.flow.step for task in tasks if task.flow is not None}

    def named(text: str) -> str:
        return _TASK.sub(lambda match: steps.get(match[0], match[0]), text)

    return [
        replace(each, message=named(each.message), found=named(each.found), fix=named(each.fix)) for each in findings
    ]


def omitted_by_inputs(flows: Mapping[str, Flow], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tasks that a run with these inputs omits, whatever its steps give out."""
    first: list[str] = []
    for flow in flows.values():
        if flow.condition is None or not all(r[0] == "inputs" and r[1] in inputs for r in flow.condition.references()):
            continue
        chosen = evaluate(flow.condition, lambda reference: inputs[reference[1]]) is True
        first += flow.otherwise if chosen else flow.then
    return omitted_with(flows, first)


def omitted_with(flows: Mapping[str, Flow], first: Iterable[str], over: Collection[str] = ()) -> tuple[str, ...]:
    """Return the tasks that are omitted together with `first`, which included, in the order of `flows`.

    A task is omitted if it takes an output of an omitted one and has no default for it. An omitted condition omits both
    of its branches. Tasks in `over` have ended and stay as they are.
    """
    ended = frozenset(over)
    takers: dict[str, list[str]] = {}
    for task, flow in flows.items():
        for take in flow.takes.values():
            if take.default is None:
                takers.setdefault(take.step, []).append(task)
    omitted: set[str] = set()
    following = [*first]
    while following:
        task = following.pop()
        if task in ended or task in omitted or task not in flows:
            continue
        omitted.add(task)
        following += (*takers.get(task, ()), *flows[task].then, *flows[task].otherwise)
    return tuple(task for task in flows if task in omitted)
