"""JSON Schemas of the data that commands answer with, made of docs/answers.md, which people read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
_TYPES: Mapping[str, Mapping[str, Any]] = {
    **{name: {"type": name} for name in ("integer", "number", "boolean", "object", "null")},
    "any": {},
    "text": {"type": "string"},
    "count": {"type": "integer", "minimum": 0},
    "ordinal": {"type": "integer", "minimum": 1},
    "seconds": {"type": "number", "minimum": 0},
    "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "object id": {"type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"},
}
_FIELD = re.compile(r"(?P<names>[\w.-]+\??(?:, [\w.-]+\??)*)(?:: (?P<type>.+?))?(?: — (?P<text>.+))?")
_EITHER, _IS = "either", "is"
_OR = r" \| (?![^\[{]*[\]}])"  # outside of brackets


class _Line(NamedTuple):
    depth: int
    name: str
    optional: bool
    type: str
    text: str


def schemas(page: str) -> dict[str, Any]:
    """Return the schema of each section of the page by its name. Raises ValueError for a line that is no field."""
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return dict(_section(*section.split("\n", 1)) for section in sections)


def _section(heading: str, body: str) -> tuple[str, dict[str, Any]]:
    name, _, commands = heading.partition(": ")
    text, fields, _ = body.split("```")
    lines = [line for row in fields.strip().splitlines() for line in _lines(row)]
    defined = {line.name: _type(line.type, below) for line, below in _blocks(lines) if line.name[0].isupper()}
    schema = _DRAFT | {"title": f"data of {commands}" if commands else name, "description": " ".join(text.split())}
    whole = _type(lines[0].type, next(_blocks(lines))[1]) if lines[0].name == _IS else _object(lines)
    return name, schema | whole | ({"$defs": defined} if defined else {})


def _lines(text: str) -> Iterator[_Line]:
    """Yield a line for each name before the colon."""
    field = _FIELD.fullmatch(text.strip())
    if field is None:
        raise ValueError(text)
    for name in field["names"].split(", "):
        depth = len(text) - len(text.lstrip())
        yield _Line(depth, name.rstrip("?"), name.endswith("?"), field["type"] or "text", field["text"] or "")


def _blocks(lines: Sequence[_Line]) -> Iterator[tuple[_Line, Sequence[_Line]]]:
    """Yield each field with the lines below it."""
    starts = [number for number, line in enumerate(lines) if line.depth == lines[0].depth]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start], lines[start + 1 : end]


def _object(lines: Sequence[_Line]) -> dict[str, Any]:
    fields = {line.name: (line, below) for line, below in _blocks(lines) if not line.name[0].isupper()}
    either, _ = fields.pop(_EITHER, (None, ()))
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {
        name: _type(line.type, below) | ({"description": line.text} if line.text else {})
        for name, (line, below) in fields.items()
    }
    schema["required"] = [name for name, (line, _) in fields.items() if not line.optional]
    if either is not None:
        schema["anyOf"] = [{"required": group.split(", ")} for group in either.type.split(" | ")]
    return schema


def _type(words: str, below: Sequence[_Line]) -> dict[str, Any]:
    """Return the schema of a type: names and texts with ` | ` between them. `{}` is an object of the lines below."""
    names = re.split(_OR, words)
    if len(names) > 1 and all(name[0] == '"' or name == "null" for name in names):
        return {"enum": [None if name == "null" else name.strip('"') for name in names]}
    if len(names) > 1:
        return {"anyOf": [_type(name, below) for name in names]}
    if words.startswith("{}"):
        return _object(below) | ({"additionalProperties": False} if words.endswith("!") else {})
    if words[0] == "[":
        return {"type": "array", "items": _type(words[1:-1], below)}
    if words[0] == "{":
        return {"type": "object", "additionalProperties": _type(words[1:-1], below)}
    if words[0] == '"' or words == "true":
        return {"const": words == "true" or words.strip('"')}
    if words[0].isupper():
        return {"$ref": f"#/$defs/{words}"}
    return dict(_TYPES.get(words, {"$ref": f"{words}.json"}))
