"""Read typed values of a definition: inputs in the frontmatter, outputs of a step."""

from __future__ import annotations

from typing import Any

from idumb.domain import paths
from idumb.domain.finding import did_you_mean
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.workflow import Value
from idumb.markdown.syntax.problems import Field
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text
from idumb.markdown.workflows import foreign_keys

_INPUT = ("type", "description", "choices", "default")
_OUTPUT = ("type", "description", "choices", "file", "key")


def inputs(node: Node, field: Field) -> tuple[Value, ...]:
    return _values(node, field, _INPUT, workflow.INPUT_TYPES, "input")


def outputs(node: Node, field: Field) -> tuple[Value, ...]:
    return _values(node, field, _OUTPUT, workflow.OUTPUT_TYPES, "output")


def _values(node: Node, field: Field, keys: tuple[str, ...], types: tuple[str, ...], noun: str) -> tuple[Value, ...]:
    if not is_map(node):
        accepted = f"a map of names to {{{', '.join(keys)}}}"
        field.error("workflow.bad-value", node.start, f"`{field.label}` must be {accepted}", shown(node), accepted)
        return ()
    values = []
    for key, below in node.pairs:
        if not workflow.VALUE_NAME.fullmatch(key.value) or key.value == workflow.OUTCOME:
            accepted = "a lower-case letter, then letters, digits and `_`; not `outcome`"
            field.error("workflow.bad-name", key.start, f"`{key.value}` cannot name an {noun}", key.value, accepted)
        value = _value(key, below, field, (keys, types, noun))
        if value is not None:
            values.append(value)
    return tuple(values)


_Rules = tuple[tuple[str, ...], tuple[str, ...], str]


def _value(name: Node, node: Node, field: Field, rules: _Rules) -> Value | None:
    keys, types, noun = rules
    if is_text(node) and node.value in types and node.value != workflow.CHOICE:
        return Value(name.value, node.value, line=_line(name, field))
    fields = mapping(node, keys, field, f"the {noun} `{name.value}`")
    if fields is None:
        return None
    kind = fields.get("type")
    if not is_text(kind) or kind.value not in types:
        found, at = ("", node.start) if kind is None else (shown(kind), kind.start)
        message = f"The {noun} `{name.value}` has " + (f"the unknown type `{found}`" if found else "no `type`")
        fix = did_you_mean(found, types, f"write {' or '.join(types)}")
        field.error("workflow.bad-type", at, message, found, ", ".join(types), fix)
        return None
    texts = {key: text(fields[key], field) for key in ("description", "file", "key") if key in fields}
    choices = _choices(name, kind.value, fields.get("choices"), field)
    value = Value(name.value, kind.value, choices=choices, line=_line(name, field), **texts)
    _place(value, fields, field)
    return _with_default(value, fields.get("default"), field)


def _choices(name: Node, kind: str, node: Node | None, field: Field) -> tuple[str, ...]:
    items = node.items if is_list(node) else []
    choices = tuple(item.value for item in items if is_text(item) and item.value)
    if (kind == workflow.CHOICE) != bool(choices) or len(choices) < len(items) or len(set(choices)) < len(choices):
        at = name.start if node is None else node.start
        accepted = "`choices: [a, b]` for the type `choice`, and only for it, each once"
        field.error("workflow.bad-choices", at, f"`{name.value}` needs other `choices`", shown(node), accepted)
    return choices


def _place(value: Value, fields: dict[str, Node], field: Field) -> None:
    if value.file and (problem := paths.problem(value.file) or (paths.has_wildcard(value.file) and "has a wildcard")):
        at, accepted = fields["file"].start, "one path in the repository"
        field.error("workflow.bad-file", at, f"`{value.file}` {problem}", value.file, accepted)
    if value.key and not value.file:
        fix = "add `file:` and the path of a JSON file, or remove `key`"
        field.error("workflow.bad-file", fields["key"].start, "`key` needs `file`", value.key, "file and key", fix)


def _with_default(value: Value, node: Node | None, field: Field) -> Value | None:
    if node is None:
        return value
    default = workflow.from_text(value, node.value) if is_text(node) else None
    if default is None:
        message = f"The default of `{value.name}` is not {value.accepted}"
        field.error("workflow.bad-default", node.start, message, shown(node), value.accepted)
        return None
    return Value(value.name, value.type, value.description, value.choices, default, line=value.line)


def mapping(node: Node, keys: tuple[str, ...], field: Field, owner: str) -> dict[str, Node] | None:
    """Return the values of a mapping by key; report other nodes, unknown keys and keys without a value."""
    accepted = ", ".join(keys)
    if not is_map(node):
        message = f"{owner[:1].upper()}{owner[1:]} must be a mapping"
        field.error("workflow.bad-value", node.start, message, shown(node), accepted, "write key: value lines")
        return None
    fields: dict[str, Node] = {}
    for key, below in node.pairs:
        if key.value not in keys and key.value[:2] != "x-":
            message, fix = f"Unknown key `{key.value}` in {owner}", foreign_keys.fix(key.value, keys)
            field.error("workflow.unknown-key", key.start, message, key.value, accepted, fix)
        elif is_text(below) and below.is_null:
            message = f"`{key.value}` in {owner} has no value"
            field.error("workflow.empty-value", key.start, message, "", accepted, "write a value, or remove it")
        else:
            fields[key.value] = below
    return fields


def text(node: Node, field: Field) -> str:
    """Return a text; "" with a problem for anything else."""
    if is_text(node) and node.value.strip():
        return node.value.strip()
    field.error("workflow.bad-value", node.start, f"{field.label}: a text is needed here", shown(node), "a text")
    return ""


def shown(node: Node | None) -> str:
    if is_text(node):
        return node.value
    return "" if node is None else "a list" if is_list(node) else "a mapping"


def plain(node: Node) -> Any:
    """Return a node of JSON in YAML as the value that JSON means."""
    if is_list(node):
        return [plain(item) for item in node.items]
    if is_map(node):
        return {key.value: plain(below) for key, below in node.pairs}
    if not node.plain:
        return node.value
    return {"true": True, "false": False, "null": None}.get(node.value, _number(node.value))


def _number(word: str) -> Any:
    declared = {kind: Value("", kind) for kind in (expression.INTEGER, expression.NUMBER)}
    number = workflow.from_text(declared[expression.INTEGER], word)
    return workflow.from_text(declared[expression.NUMBER], word) if number is None else number


def _line(name: Node, field: Field) -> int:
    return field.problems.source.place(name.start)[0]
