"""Read field values with a grammar: tests, conditions, interfaces, limits, rollback, options, handoffs, free text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.finding import nearest
from idumb.domain.plans.plan import Condition, Handoff, Interface, Limits, Option, RollbackClass, TestIntent
from idumb.markdown.plans import claims
from idumb.markdown.syntax import inline, scalars, yaml_nodes
from idumb.markdown.syntax.field_values import Bullet, Value, yaml_bullet, yaml_text
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.problems import Field, Problems

_PHASES = {"fails before, passes after": ("fails", "passes"), "passes before and after": ("passes", "passes")}
_DASH = lazy_pattern.compile(r"\s*(?:—|–|--|-(?=\s))\s*")
_PROPERTIES = ("inputs", "outputs", "errors", "side effects", "persistence", "async")
_BESIDE = lazy_pattern.compile(rf"(?:name|{'|'.join(_PROPERTIES)})\s*:", re.IGNORECASE)
_OPTION = lazy_pattern.compile(r"([\w.-]+):\s+(.+)", re.DOTALL)
_HANDOFF = lazy_pattern.compile(r"([\w.:/@+-]+)(?:\s*[(\[]([^()\[\]]+)[)\]])?")
_CONDITIONS = (
    'file exists PATH, file absent PATH, file contains PATH "TEXT", symbol NAME in PATH, env NAME, context PATH, '
    "command and a command"
)


def _malformed(code: str, text: Text, field: Field, accepted: str) -> None:
    message = f"`{text.s}` is not a valid value of {field.label}"
    field.error(code, text.at(0), message, text.s, accepted, f"write {accepted}")


def tests(value: Value) -> tuple[TestIntent, ...]:
    """Read test intents: command, dash, when it passes, colon, intent."""
    intents = []
    for text in [] if value.is_none else value.texts():
        intent = _test(text, value)
        intents += [intent] if intent else []
    scalars.below(value)
    return tuple(intents)


def _test(text: Text, field: Field) -> TestIntent | None:
    accepted = "`command` — fails before, passes after: intent"
    spans = inline.code_spans(text.s)
    if spans and spans[0][0] == 0 and (dash := _DASH.match(text.s, spans[0][1])):
        words, _, intent = text.s[dash.end() :].partition(":")
        command = inline.span_content(text.s, spans[0])
        if words.strip() in _PHASES and intent.strip() and command.strip():
            return TestIntent(command, *_PHASES[words.strip()], intent=intent.strip())
    _malformed("test.malformed", text, field, accepted)
    return None


def conditions(value: Value) -> tuple[Condition, ...]:
    valid = []
    for text in [] if value.is_none else scalars.listed(value):
        condition = _condition(text)
        if condition:
            valid.append(condition)
        else:
            _malformed("condition.malformed", text, value, _CONDITIONS)
    return tuple(valid)


def _condition(text: Text) -> Condition | None:
    parts = list(claims.words(text))
    bare = [w.text if w.bare else "" for w in parts]
    count = len(parts)
    if bare[:1] == ["command"] and count == 2 and not parts[1].bare:
        return Condition("command", parts[1].text) if parts[1].text.strip() else None
    if bare[:1] in (["env"], ["context"]) and count == 2:
        return Condition(bare[0], parts[1].text)
    if bare[:1] == ["file"] and bare[1:2] in (["exists"], ["absent"]) and count == 3:
        return Condition(f"file-{bare[1]}", parts[2].text)
    if bare[:2] == ["file", "contains"] and count == 4 and not parts[3].bare:
        return Condition("file-contains", parts[2].text, text=parts[3].text)
    if bare[:1] == ["symbol"] and bare[2:3] == ["in"] and count == 4:
        return Condition("symbol", parts[1].text, path=parts[3].text)
    return None


def interfaces(value: Value) -> tuple[Interface, ...]:
    """Read interfaces: one public name per bullet, with its properties in nested bullets."""
    if value.is_none:
        return ()
    if value.inline.s:
        accepted = "one public name per bullet, with its properties in nested bullets"
        _malformed("interface.malformed", value.inline, value, accepted)
    bullets = value.bullets or list(_interface_nodes(value.node))
    beside = next((b for b in value.bullets if _BESIDE.match(b.text.s)), None)
    if beside is not None:
        accepted = "one public name per bullet, with its properties in nested bullets"
        _malformed("interface.malformed", beside.text, value, accepted)
        return ()
    return tuple(_interface(bullet, value) for bullet in bullets)


def _interface_nodes(node: yaml_nodes.Node | None) -> Iterator[Bullet]:
    for key, below in node.pairs if isinstance(node, yaml_nodes.Mapping) else []:
        bullet = yaml_bullet(key)
        for name, text in below.pairs if isinstance(below, yaml_nodes.Mapping) else []:
            shown = f"{name.value}: {text.value if isinstance(text, yaml_nodes.Scalar) else ''}"
            bullet.children.append(Bullet(Text(shown.replace("_", " ", 1), [(0, name.start)]), name.start))
        yield bullet


def _interface(bullet: Bullet, field: Field) -> Interface:
    name = inline.unquote(bullet.text.s)
    if name == bullet.text.s and re.search(r"[\s:,]", name):
        _malformed("interface.malformed", bullet.text, field, "one public name per bullet, in backticks")
    properties: dict[str, str] = {}
    for child in bullet.children:
        key, colon, text = child.text.s.partition(":")
        key = " ".join(key.replace("_", " ").casefold().split())
        if key in properties or key not in _PROPERTIES or (not text.strip() and (colon or key != "async")):
            near = nearest(key, _PROPERTIES)
            accepted = ", ".join(_PROPERTIES) + (f" (did you mean {near}?)" if near and near != key else "")
            _malformed("interface.bad-property", child.text, field, accepted)
        properties[key] = text.strip() or "yes"
    return Interface(name, properties)


def limits(value: Value) -> Limits | None:
    """Read `files N`, `lines N`, `paths GLOB…`."""
    if value.is_none:
        return None
    values: dict[str, Any] = {"paths": []}
    if isinstance(value.node, yaml_nodes.Mapping):
        _limits_mapping(value.node, values, value)
    for text in value.texts():
        kind = ""
        for item in scalars.split(text, value):
            kind = _limit(item, kind, values, value)
    for bullet in value.bullets:
        for child in bullet.children:
            if bullet.text.s.removesuffix(":") == "paths":
                values["paths"] += [w.text for w in claims.words(child.text)]
            else:
                _malformed("limits.malformed", child.text, value, "files N, lines N, paths GLOB")
    return Limits(values.get("files"), values.get("lines"), tuple(values["paths"]))


def _limit(item: Text, kind: str, values: dict[str, Any], field: Field) -> str:
    """Read one item of the comma list; `paths` also applies to the items after it."""
    parts = list(claims.words(item))
    head = parts[0].text.removesuffix(":") if parts[0].bare else ""
    number = whole_numbers.parse(parts[1].text) if len(parts) == 2 and parts[1].text.isdecimal() else None
    if head in {"files", "lines"} and number is not None and head not in values:
        values[head] = number
        return head
    if head == "paths":
        values["paths"] += [w.text for w in parts[1:]]
        return head
    if kind == "paths" and head not in {"files", "lines"}:
        values["paths"] += [w.text for w in parts]
        return kind
    _malformed("limits.malformed", item, field, "files N, lines N, paths GLOB")
    return ""


def _limits_mapping(node: yaml_nodes.Mapping, values: dict[str, Any], field: Field) -> None:
    for key, value in node.pairs:
        plain = isinstance(value, yaml_nodes.Scalar) and value.plain and value.value.isdecimal()
        number = whole_numbers.parse(value.value) if plain and isinstance(value, yaml_nodes.Scalar) else None
        if key.value in {"files", "lines"} and number is not None:
            values[key.value] = number
        elif key.value == "paths" and isinstance(value, yaml_nodes.Sequence):
            values["paths"] += [i.value for i in value.items if isinstance(i, yaml_nodes.Scalar)]
        else:
            text = Text(key.value, [(0, key.start)])
            _malformed("limits.malformed", text, field, "{files: N, lines: N, paths: [GLOB]}")


def limits_of(node: yaml_nodes.Mapping, field: Field) -> Limits:
    """Read the limits in the frontmatter of a plan."""
    values: dict[str, Any] = {"paths": []}
    _limits_mapping(node, values, field)
    return Limits(values.get("files"), values.get("lines"), tuple(values["paths"]))


def rollback(value: Value) -> RollbackClass:
    """Read `reversible`, `compensatable` with commands below it, or `irreversible: reason`."""
    accepted = "reversible, compensatable with commands in nested bullets, or irreversible: reason"
    text = value.inline
    if text.s == "reversible" and not value.bullets:
        return RollbackClass()
    if text.s in {"compensatable", "compensatable:"} and (value.bullets or value.fences):
        commands = dataclasses.replace(value, inline=Text("", [(0, value.start)]), others=[], node=None)
        return RollbackClass("compensatable", scalars.commands(commands))
    kind, colon, reason = text.s.partition(":")
    if kind == "irreversible" and colon and reason.strip() and not value.bullets:
        return RollbackClass("irreversible", (), reason.strip())
    if isinstance(value.node, yaml_nodes.Mapping):
        return _rollback_mapping(value.node, value, accepted)
    shown = text if text.s else next(value.texts(), text)
    _malformed("rollback.malformed", shown, value, accepted)
    return RollbackClass()


def _rollback_mapping(node: yaml_nodes.Mapping, value: Value, accepted: str) -> RollbackClass:
    if len(node.pairs) == 1:
        key, below = node.pairs[0]
        entries = below.items if isinstance(below, yaml_nodes.Sequence) else [below]
        texts = [e.value.strip() for e in entries if isinstance(e, yaml_nodes.Scalar) and not e.is_null]
        if texts and len(texts) == len(entries):
            if key.value == "compensatable":
                return RollbackClass("compensatable", tuple(inline.code(t) or t for t in texts))
            if key.value == "irreversible" and len(texts) == 1:
                return RollbackClass("irreversible", (), texts[0])
    _malformed("rollback.malformed", Text("rollback", [(0, node.start)]), value, accepted)
    return RollbackClass()


def options(value: Value) -> tuple[Option, ...]:
    """Read bullets `id: text`."""
    by_id: dict[str, Option] = {}
    texts = [] if value.is_none else [*value.texts(), *_option_nodes(value.node)]
    for text in texts:
        m = _OPTION.fullmatch(text.s)
        if m and m[1] not in by_id:
            by_id[m[1]] = Option(m[1], m[2])
        else:
            _malformed("option.malformed", text, value, "bullets `id: text` with unique ids")
    scalars.below(value)
    return tuple(by_id.values())


def _option_nodes(node: yaml_nodes.Node | None) -> Iterator[Text]:
    for key, text in node.pairs if isinstance(node, yaml_nodes.Mapping) else []:
        shown = text.value.strip() if isinstance(text, yaml_nodes.Scalar) else ""
        yield Text(f"{key.value}: {shown}", [(0, key.start)])


def handoffs(value: Value) -> tuple[Handoff, ...]:
    """Read agents, each with an optional type in brackets."""
    receivers = []
    for text in [] if value.is_none else value.texts():
        m = _HANDOFF.fullmatch(text.s)
        if m:
            receivers.append(Handoff(m[1], m[2].strip() if m[2] else None))
        else:
            _malformed("handoff.malformed", text, value, "agent (type); several in bullets")
    scalars.below(value)
    return tuple(receivers)


def free_text(value: Value) -> str:
    """Return free text with wrapped lines joined and nested bullets kept."""
    if value.is_none:
        return ""
    if not value.bullets:
        return value.inline.s
    return "\n".join(_outline(value.bullets))


def _outline(bullets: list[Bullet], depth: int = 0) -> Iterator[str]:
    for bullet in bullets:
        yield "  " * depth + "- " + bullet.text.s
        yield from _outline(bullet.children, depth + 1)


def yes(value: Value) -> bool:
    """Read `yes` or `no`; YAML also allows `true` and `false`."""
    if isinstance(value.node, yaml_nodes.Scalar) and value.node.plain and value.node.value in {"true", "false"}:
        return value.node.value == "true"
    return scalars.choice(value, ("yes", "no")) == "yes"


def yaml_value(name: str, key: yaml_nodes.Scalar, node: yaml_nodes.Node, problems: Problems) -> Value:
    """Return a key of a YAML task as a field value."""
    value = Value(
        key.value, problems, name, key.start, Text("", [(0, node.start)]), [], node.start, node.end, node=node
    )
    if isinstance(node, yaml_nodes.Scalar):
        value.inline = yaml_text(node, literal=name == "verify")
    elif isinstance(node, yaml_nodes.Sequence):
        value.bullets = [yaml_bullet(item) for item in node.items if isinstance(item, yaml_nodes.Scalar)]
    return value
