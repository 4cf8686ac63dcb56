"""The JSON Schemas that `idumb schema` prints, by name, and the answers that must follow them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema
import referencing

from idumb.system import shipped
from idumb.views import answer_schemas


@cache
def every() -> dict[str, Any]:
    return answer_schemas.schemas(shipped.pages()["answers"]) | shipped.schemas()


def published(name: str) -> dict[str, Any]:
    return dict(every()[name])


@cache
def by_command() -> dict[str, str]:
    """The name of the schema of each command's data."""
    titles = {name: schema["title"] for name, schema in every().items() if schema["title"].startswith("data of ")}
    return {command: name for name, title in titles.items() for command in title.removeprefix("data of ").split(", ")}


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return a validator that finds the schemas that this one refers to."""
    parts = ((f"{each}.json", referencing.Resource.from_contents(schema)) for each, schema in every().items())
    return jsonschema.Draft202012Validator(published(name), registry=referencing.Registry().with_resources(parts))


_KNOWN = set[object]()
_LIKE = {"workflow run": "run", "dlq retry": "run"}
_WORD = re.compile(r"[a-z][a-z-]{,29}")


def check(arguments: Sequence[str], answer: Mapping[str, Any]) -> None:
    """Assert that an answer follows the schema of its command. Of answers and rows of one shape, one is looked at."""
    _check("answer", {**answer, "data": {}})
    if answer["data"]:
        name = _of(arguments)
        _check(name, _new_rows(name, answer["data"]))


def _of(arguments: Sequence[str]) -> str:
    named, words = by_command(), [word for word in arguments if word != "--json"]
    while words[0] not in {name.partition(" ")[0] for name in named}:
        words.pop(0)  # an option before the command
    if (like := _LIKE.get(" ".join(words[:2]))) is not None:
        return like
    name = f"{words[0]} N" if words[1:] and words[0] == "next" else words[0]
    return next(named[each] for each in (*(f"{name} {word}" for word in words[1:]), name) if each in named)


def _check(name: str, value: Any) -> None:
    if _is_new(name, value):
        validator(name).validate(value)


def _new_rows(place: str, value: Any) -> Any:
    """Return data without the rows of lists whose shape was in that place before; no list of data must have rows."""
    if isinstance(value, dict):
        return {key: _new_rows(f"{place}.{key}", part) for key, part in value.items()}
    return [row for row in value if _is_new(place, row)] if isinstance(value, list) else value


def _is_new(place: str, value: Any) -> bool:
    if (shape := (place, _shape(value))) in _KNOWN:
        return False
    _KNOWN.add(shape)
    return True


def _shape(value: Any) -> object:
    """Keys, types and the words that an enumeration could have."""
    if isinstance(value, dict):
        return tuple((key, _shape(part)) for key, part in value.items())
    if isinstance(value, list):
        return frozenset(map(_shape, value))
    return value if isinstance(value, str) and _WORD.fullmatch(value) else type(value)
