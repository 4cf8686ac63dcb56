"""Command lines in the pages name commands, actions and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from idumb.cli import main
from tests.meta import source

PAGES = [source.ROOT / "README.md", source.ROOT / "CONTRIBUTING.md", *sorted((source.ROOT / "docs").rglob("*.md"))]
_SPAN = re.compile(r"`idumb ([a-z][a-z-]*(?: [^`]*)?)`|^(?:    |\$ )idumb ([a-z][^#\n]+)", re.MULTILINE)


def lines() -> Iterator[tuple[str, str]]:
    for page in (page for page in PAGES if page.name != "commands.md"):  # it is generated
        for span, line in _SPAN.findall(source.text(page)):
            yield source.name_of(page), (span or line).strip()


def problem(line: str) -> str | None:
    """Return the first word of a command line that the program does not know."""
    name, *words = line.split()
    command = main.group.get_command(click.Context(main.group), name)
    if command is None:
        return name
    if isinstance(command, click.Group):
        action = next((word for word in words if not word.startswith("-")), "")
        if action not in {"", *command.commands}:
            return action
        command = command.commands.get(action, command)
    known = {option for p in command.params if isinstance(p, click.Option) for option in (*p.opts, *p.secondary_opts)}
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    return next((option for option in options if option not in {*known, "--help", "--json"}), None)


def test_every_command_line_of_a_page_exists() -> None:
    found = list(lines())
    assert len(found) > 200
    assert [(page, line, why) for page, line in found if (why := problem(line))] == []
