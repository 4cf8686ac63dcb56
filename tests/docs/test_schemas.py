"""docs/schemas has what the rows of front matter and configuration say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_schemas_for_editors_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate_schemas", DOCS / "generate_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for name, schema in generator.schemas().items():
        written = (DOCS / "schemas" / name).read_text(encoding="utf-8")
        assert written == generator.text(schema), "run python docs/generate_schemas.py"
