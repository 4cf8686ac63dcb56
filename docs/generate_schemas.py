"""Write the JSON Schemas that editors use for the front matter of plans and for the configuration, from their rows.

Run `python docs/generate_schemas.py`. A test checks that they are up to date.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

from idumb.markdown.plans import frontmatter
from idumb.markdown.settings import configuration
from idumb.markdown.syntax import record

FOLDER = pathlib.Path(__file__).resolve().parent / "schemas"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAN = "The YAML between the --- lines at the start of a *PLAN.md. `idumb help plan-format` is the reference."
_OWN = {"^[xX]-.": {"description": "Yours: kept, not read."}}
_CONFIGURATION = "The settings of a repository. `idumb help configuration` is the reference."


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name of its file."""
    plan = {"title": "front matter of a plan", "description": _PLAN, "patternProperties": _OWN}
    settings = {"title": ".idumb/config.yaml", "description": _CONFIGURATION}
    return {
        "plan.json": {"$schema": _DRAFT, **plan, **record.schema_of(frontmatter.KEYS)},
        "config.json": {"$schema": _DRAFT, **settings, **record.schema_of(configuration.KEYS)},
    }


def text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, schema in schemas().items():
        (FOLDER / name).write_text(text(schema), encoding="utf-8")
    sys.exit(0)
