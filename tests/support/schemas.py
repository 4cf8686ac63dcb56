"""The JSON Schemas that `idumb schema` prints, by name."""

from __future__ import annotations

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


def by_command() -> dict[str, str]:
    """The name of the schema of each command's data."""
    titles = {name: schema["title"] for name, schema in every().items() if schema["title"].startswith("data of ")}
    return {command: name for name, title in titles.items() for command in title.removeprefix("data of ").split(", ")}


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return a validator that finds the schemas that this one refers to."""
    parts = ((f"{each}.json", referencing.Resource.from_contents(schema)) for each, schema in every().items())
    return jsonschema.Draft202012Validator(published(name), registry=referencing.Registry().with_resources(parts))
