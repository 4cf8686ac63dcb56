"""Typed values of a workflow's definition: inputs in the frontmatter, outputs of a step; hints about unknown keys."""

from __future__ import annotations

from typing import Any

from idumb.domain import paths
from idumb.domain.plans import workflow
from idumb.domain.plans.workflow import Value
from idumb.markdown.syntax import value_types
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import Node, is_text
from idumb.markdown.syntax.value_types import NODE, TEXT, TEXTS, Keys, ValueType, choice, mapping_of, matching

_NAME = matching(
    "a lower-case letter, then letters, digits and `_`; not `outcome`",
    lambda text: workflow.VALUE_NAME.fullmatch(text) and text != workflow.OUTCOME,
)._replace(code="bad-name")


def _values(noun: str, types: tuple[str, ...], **own: ValueType) -> ValueType:
    """Return the type of a map of names to typed values."""
    kind = choice(*types)._replace(required=True, code="bad-type")
    keys = {"type": kind, "description": TEXT, "choices": TEXTS, **own}

    def _value(node: Node, place: Place) -> Value | None:
        line = place.source.line_number(place.at)
        if is_text(node) and node.value in types and node.value != workflow.CHOICE:
            return Value(place.key, node.value, line=line)
        given = value_types.read_mapping(node, keys, place, f"the {noun} `{place.key}`", hint=hint)
        if "type" not in given:
            return None
        default = given.pop("default", None)
        made = Value(place.key, line=line, **given)
        _check(made, {key.value: below for key, below in node.pairs}, place)
        return _with_default(made, default, place)

    accepted = f"{{{', '.join(keys)}}}"
    by_name = mapping_of(ValueType(accepted, _value), _NAME)
    return ValueType(f"a map of names to {accepted}", lambda node, place: tuple(by_name.read(node, place).values()))


def _check(made: Value, nodes: dict[str, Node], place: Place) -> None:
    choices = nodes.get("choices")
    given = len(choices.items) if choices is not None else 0
    if (made.type == workflow.CHOICE) != bool(made.choices) or len(set(made.choices)) < given:
        place.report("workflow.bad-choices", place.at if choices is None else choices.start, name=made.name)
    if made.file and (problem := paths.problem(made.file) or (paths.has_wildcard(made.file) and "has a wildcard")):
        place.report("workflow.bad-file", nodes["file"].start, made.file, why=f"`{made.file}` {problem}")
    if made.key and not made.file:
        fix = "add `file:` and the path of a JSON file, or remove `key`"
        place.report("workflow.bad-file", nodes["key"].start, made.key, why="`key` needs `file`", fix=fix)


def _with_default(made: Value, node: Node | None, place: Place) -> Value | None:
    if node is None:
        return made
    default = workflow.from_text(made, node.value) if is_text(node) else None
    if default is None:
        place.report("workflow.bad-default", node.start, node.value, name=made.name, accepted=made.accepted)
        return None
    return Value(made.name, made.type, made.description, made.choices, default, line=made.line)


INPUTS = _values("input", workflow.INPUT_TYPES, default=NODE)
OUTPUTS = _values("output", workflow.OUTPUT_TYPES, file=TEXT, key=TEXT)


# Keys that definitions of other workflow engines have, with what to write instead

_NO_LOOP = "a workflow has a fixed number of steps: write a step for each item, or a loop in one script"
_FIXES = {
    "workflow_id": "write name:",
    "metadata": "write its keys in the frontmatter itself",
    "phases": "write each phase as a heading of level 2, and its steps below it",
    "jobs": "write each step as a heading of level 3 with a fence",
    **dict.fromkeys(("step_id", "id"), "write it in the heading: ### step-id: Title"),
    "phase_id": "write the phase as a heading of level 2 above the step",
    **dict.fromkeys(("step_type", "type"), "write kind:"),
    "agent_id": "write agent:",
    "uses": "write agent:, or a command under run:",
    **dict.fromkeys(("command", "script"), "write run:"),
    "depends_on": "write needs:",
    **dict.fromkeys(("condition", "when"), "write a step of kind condition, with if: and then:"),
    "timeout_seconds": "write timeout: with a unit, such as 90s",
    **dict.fromkeys(("retry_count", "max_retries"), "write retries:"),
    "handoff_type": "write it behind the receiver: handoff_to: [NAME (escalation)]",
    "acceptance_criteria": "write acceptance:",
    "deliverables": "write files:",
    **dict.fromkeys(("status", "outcome"), "remove it: the state of a step is in the event log"),
    **dict.fromkeys(("for_each", "foreach", "loop", "repeat", "matrix", "with_items"), _NO_LOOP),
}


def hint(name: str, _: Keys) -> dict[str, Any]:
    """Return what to write instead of an unknown key."""
    return {"near": (), "fix": _FIXES[name]} if name in _FIXES else {"fix": f"remove it, or rename it to x-{name}"}
