"""JSON Schemas of what people write, for editors, made of the rows that read it."""

from __future__ import annotations

from typing import Any

from idumb.markdown.plans import frontmatter
from idumb.markdown.settings import configuration
from idumb.markdown.syntax import record

_DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
_OWN = {"patternProperties": {"^[xX]-.": {"description": "Yours: kept, not read."}}}


def schemas() -> dict[str, Any]:
    """Return the schema of .idumb/config.yaml and of the front matter of a plan, by name."""
    return {
        "config": _DRAFT | {"title": ".idumb/config.yaml"} | record.schema_of(configuration.KEYS),
        "plan": _DRAFT | {"title": "front matter of a plan"} | _OWN | record.schema_of(frontmatter.KEYS),
    }
