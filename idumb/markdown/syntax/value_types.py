"""The types of values in front matter, configuration, policies, workflows, steps and scripts, and how to read them.

A type says in words what it accepts, and reads it. Every mistake is reported, at its place, with the nearest name.
Types also make the JSON Schemas that editors use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from idumb.domain import whole_numbers
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import NULLS, Node, is_list, is_map, is_text

_DURATION = re.compile(r"(?=\d)(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")
_INTEGER = re.compile(r"[-+]?\d+")
_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.?\d+)([eE][-+]?\d+)?")
_MOST_DIGITS = 300  # of a number for an adapter; a float has no more
_MOST = 10**15

Reader = Callable[[Node, Place], Any]
Schema = Mapping[str, Any]
ANY_TEXT: Schema = {"type": ["string", "number", "boolean"]}
"""A plain scalar is its source text: 012, 06.2 and yes are texts."""


class BadValue(Exception):
    """A node that its type does not accept; `accepted` and `fix` replace the words of the type."""

    def __init__(self, node: Node, accepted: str = "", fix: str = "") -> None:
        super().__init__(accepted)
        self.node, self.accepted, self.fix = node, accepted, fix


class ValueType(NamedTuple):
    """What a value may be, in words, and its reader, which raises BadValue for anything else.

    - `keys`: those of a mapping. `words`: the only texts that it accepts. `required`: whether its key must be there.
    - `code`: that of the finding about a value that it does not accept. `doc`: what the value is for.
    """

    accepted: str
    read: Reader
    required: bool = False
    keys: Mapping[str, ValueType] = {}
    words: tuple[str, ...] = ()
    code: str = "bad-value"
    schema: Schema = ANY_TEXT
    doc: str = ""

    @property
    def must(self) -> ValueType:
        return self._replace(required=True)

    def says(self, doc: str) -> ValueType:
        return self._replace(doc=doc)


Keys = Mapping[str, ValueType]
Hint = Callable[[str, Keys], Mapping[str, Any]]
"""What else to say about an unknown key."""
_NO_HINT: Hint = lambda *_: {}  # noqa: E731


def pairs(node: Node) -> list[tuple[Node, Node]]:
    """Return the keys of a mapping with their values. Raises BadValue for any other node."""
    if not is_map(node):
        raise BadValue(node)
    return node.pairs


def read_mapping(
    node: Node, keys: Keys, place: Place, owner: str, *, noun: str = "key", hint: Hint = _NO_HINT
) -> dict[str, Any]:
    """Return the values of a mapping by key; `owner` names it in messages. Raises BadValue for any other node."""
    kind, given, start = place.kind, dict[str, Any](), place.at if noun == "argument" else node.start
    missing = {name: start for name, type in keys.items() if type.required}
    for key, below in pairs(node):
        name, inner, type = key.value, place.inner(key.value, key.start), keys.get(key.value)
        if type is None:
            if not kind.own or not is_own(name):
                words = {"owner": owner, "near": tuple(keys), "accepted": ", ".join(keys), **hint(name, keys)}
                inner.report(f"{kind.prefix}.unknown-{noun}", key.start, name, **words)
        elif kind.lenient and (below.is_null or (kind.dotted and _is_empty(below, type))):
            missing |= {name: key.start} if name in missing else {}
        else:
            missing.pop(name, None)
            if below.is_null:
                inner.report(f"{kind.prefix}.empty-value", key.start, name=inner.name, accepted=type.accepted)
            elif (made := read_value(type, below, inner)) is not None:
                given[name] = made
    for name, at in missing.items():
        words = {"key": name, "owner": owner, "accepted": keys[name].accepted}
        place.inner(name, at).report(f"{kind.prefix}.missing-{noun}", at, **words)
    return given


def schema_of(keys: Keys) -> dict[str, Any]:
    """Return the JSON Schema of a mapping."""
    required = [name for name, type in keys.items() if type.required]
    properties = {name: {**type.schema, "description": type.doc or type.accepted} for name, type in keys.items()}
    known = {"type": "object", "additionalProperties": False, "properties": properties}
    return known | ({"required": required} if required else {})


def document_schema(title: str, keys: Keys) -> dict[str, Any]:
    """Return the JSON Schema of a whole document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | schema_of(keys)


def is_own(name: str) -> bool:
    """Whether a key is the user's, which is not read."""
    return name[:2].lower() == "x-" and len(name) > 2


def _is_empty(node: Node, type: ValueType) -> bool:
    return is_null(node) or (is_map(node) and not node.items and bool(type.keys))


def read_value(type: ValueType, node: Node, place: Place) -> Any:
    """Read one value; None, with a finding, if its type does not accept it."""
    try:
        return type.read(node, place)
    except BadValue as bad:
        words = {"accepted": bad.accepted or type.accepted} | ({"fix": bad.fix} if bad.fix else {})
        found, near = shown(bad.node, place), () if bad.fix else type.words
        place.report(f"{place.kind.prefix}.{type.code}", bad.node.start, found, near, name=place.name, **words)
    return None


def shown(node: Node, place: Place) -> str:
    """Return a text, or the first line of any other value as it is written."""
    source = place.source.text
    return node.value if is_text(node) else source[node.start : node.end].partition("\n")[0].strip()


# Types of mappings and lists


def section(
    make: Callable[..., Any], keys: Keys, accepted: str = "", *, named: bool = False, owner: str = ""
) -> ValueType:
    """Return the type of a mapping whose keys are the arguments of `make`; with `named`, so is `name`, its own key.

    `owner` names it in messages.
    """
    blank = {name: "" for name, type in keys.items() if type.required}  # reported

    def read(node: Node, place: Place) -> Any:
        given = read_mapping(node, keys, place, owner or f"`{place.name}`")
        lacks = blank.keys() - {key.value for key in node.items}
        return None if lacks else make(**(blank | given | ({"name": place.key} if named else {})))

    usual = f"keys with values, such as `{next(iter(keys))}`"
    return ValueType(accepted or usual, read, keys=keys, schema=schema_of(keys))


def mapping_of(values: ValueType, names: ValueType) -> ValueType:
    """Return the type of a mapping from names, which are texts of one kind, to values of another."""

    def read(node: Node, place: Place) -> dict[str, Any]:
        made = {}
        for key, below in pairs(node):
            inner = place.inner(key.value, key.start)
            if read_value(names, key, inner) is not None and (one := read_value(values, below, inner)) is not None:
                made[key.value] = one
        return made

    schema = {"type": "object", "propertyNames": names.schema, "additionalProperties": values.schema}
    return ValueType("keys with values", read, schema=schema)


def list_of(item: ValueType, accepted: str = "a list of texts", *, single: bool = False, least: int = 0) -> ValueType:
    """Return the type of a list with at least so many items; with `single`, one text needs no list."""

    def read(node: Node, place: Place) -> tuple[Any, ...]:
        if single and is_text(node):
            return (item.read(node, place),)
        if not is_list(node) or len(node.items) < least:
            raise BadValue(node)
        return tuple(one for below in node.items if (one := read_value(item, below, place)) is not None)

    schema: Schema = {"type": "array", "items": item.schema, "minItems": least}
    return ValueType(accepted, read, keys=item.keys, schema={"anyOf": [item.schema, schema]} if single else schema)


# Types of single values


def scalar(
    accepted: str, convert: Callable[[str], Any], schema: Schema = ANY_TEXT, *, plain: bool = False
) -> ValueType:
    """Return the type of a text, or with `plain` of a number or a word of YAML; None from `convert` is not accepted."""

    def read(node: Node, _: Place) -> Any:
        made = convert(node.value) if is_text(node) and (node.plain if plain else not node.json) else None
        if made is None:
            raise BadValue(node)
        return made

    return ValueType(accepted, read, schema=schema)


def choice(*words: str) -> ValueType:
    text = scalar(f"one of {', '.join(words)}", lambda word: word if word in words else None, {"enum": [*words]})
    return text._replace(words=words)


def matching(accepted: str, valid: Callable[[str], Any]) -> ValueType:
    """Return the type of a text for which `valid` is true."""
    return scalar(accepted, lambda text: text.strip() if valid(text) else None)


def pattern(accepted: str, regex: str) -> ValueType:
    """Return the type of a text that matches as a whole."""
    schema = {**ANY_TEXT, "pattern": f"^(?:{regex})$"}
    return matching(accepted, re.compile(regex).fullmatch)._replace(schema=schema)


def integer(low: int, high: int = _MOST, accepted: str = "") -> ValueType:
    """Return the type of a whole number in a range."""
    bounds = f"from {low} to {high}" if high < _MOST else f"of at least {low}"

    def convert(text: str) -> int | None:
        number = whole_numbers.parse(text) if text.isascii() and text.isdecimal() else None
        return number if number is not None and low <= number <= high else None

    schema = {"type": "integer", "minimum": low, **({"maximum": high} if high < _MOST else {})}
    return scalar(accepted or f"a whole number {bounds}", convert, schema, plain=True)


@lru_cache(maxsize=256)
def seconds(text: str, *, bare: bool = False) -> int | None:
    """Return a duration such as `1h30m` in seconds; None for anything else and for zero.

    With `bare`, a number alone is seconds too. In the fields of a task it needs a unit: 30 may mean minutes there.
    """
    m = _DURATION.fullmatch(f"{text}s" if bare and text.isdecimal() else text)
    return (int(m[1] or 0) * 3600 + int(m[2] or 0) * 60 + int(m[3] or 0) or None) if m else None


def _duration(node: Node, _: Place) -> int:
    total = seconds(node.value, bare=node.plain) if is_text(node) else None
    if total is None:
        raise BadValue(node)
    return total


TEXT = matching("a text", str.strip)._replace(schema={**ANY_TEXT, "pattern": r"\S"})
ANY = scalar("a text", lambda text: text)
EXACT = scalar("a text that is not empty", lambda text: text if text.strip() else None)
TEXTS = list_of(TEXT)
COUNT = integer(1)
_SWITCH = {"true": True, "false": False}
BOOLEAN = scalar("true or false", lambda text: _SWITCH.get(text.lower()), {"type": "boolean"}, plain=True)
DURATION = ValueType(
    "a time such as 90s, 45m, 1h30m or a number of seconds",
    _duration,
    schema={"type": ["integer", "string"], "pattern": "^(?=[0-9])([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "minimum": 1},
)
NODE = ValueType("a value", lambda node, _: node)


# Any value


def is_null(node: Node) -> bool:
    return is_text(node) and node.plain and node.value in NULLS


def anything(node: Node, _: Place | None = None) -> Any:
    """Read any value by YAML's core schema."""
    if is_map(node):
        return {key.value: anything(below) for key, below in node.pairs}
    return [anything(item) for item in node.items] if is_list(node) else _scalar(node)


def _scalar(node: Node) -> Any:
    text = node.value
    if not node.plain:
        return text
    if is_null(node):
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise BadValue(node, f"a number of at most {_MOST_DIGITS} digits")
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _data(node: Node, _: Place) -> Any:
    return {key.value: anything(below) for key, below in pairs(node)}


DATA = ValueType("keys with values", _data, schema={"type": "object"})
