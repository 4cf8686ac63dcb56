"""docs/commands.md matches the help of the commands."""

from __future__ import annotations

from idumb.cli import main
from tests.docs import generated

PAGE = (generated.DOCS / "commands.md").read_text(encoding="utf-8")


def test_the_commands_page_is_up_to_date() -> None:
    assert generated.page("commands", PAGE) == PAGE, "run python docs/generate_commands.py"


def test_every_command_is_on_the_page() -> None:
    assert all(f"## {name}\n" in PAGE for name in main.COMMANDS)
