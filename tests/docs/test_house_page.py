"""docs/design/house.md shows the current rooms, and every path on it exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.docs import generated

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design" / "house.md"


def test_the_list_of_the_rooms_matches_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == generated.page("house", text), "run python docs/generate_house.py"


def test_every_package_documents_what_it_owns() -> None:
    silent = [
        str(place.parent.relative_to(ROOT))
        for place in (ROOT / "idumb").rglob("__init__.py")
        if not ast.get_docstring(ast.parse(place.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_every_path_on_the_page_exists() -> None:
    named = set(
        re.findall(r"`((?:idumb|tests|docs|bench|templates|commands)/[\w./-]*)`", PAGE.read_text(encoding="utf-8"))
    )
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_every_function_and_test_on_the_page_about_restore_exists() -> None:
    text = (PAGE.parent / "restore.md").read_text(encoding="utf-8")
    code = "\n".join(
        p.read_text(encoding="utf-8") for folder in ("idumb", "tests") for p in (ROOT / folder).rglob("*.py")
    )
    named = {*re.findall(r"`[\w/]+\.py: (?:\w+\.)?(\w+)`", text), *re.findall(r"`(test_\w+)`", text)}
    assert len(named) > 10
    assert sorted(name for name in named if f"def {name}(" not in code) == []
