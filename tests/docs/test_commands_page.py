"""docs/commands.md matches the help of the commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_commands", DOCS / "generate_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_commands_page_is_up_to_date() -> None:
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == generator().page(), (
        "run python docs/generate_commands.py"
    )


def test_every_command_is_in_the_readme_or_on_the_page() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    from idumb.cli import main

    assert all(f"## {name}\n" in page for name in main.COMMANDS)
