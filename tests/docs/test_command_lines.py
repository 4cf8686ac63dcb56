"""Command lines in the pages name commands, actions and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from idumb.cli import main
from tests.meta import source

PAGES = [source.ROOT / "README.md", source.ROOT / "CONTRIBUTING.md", *sorted((source.ROOT / "docs").rglob("*.md"))]
GENERATED = "docs/commands.md"
_SPAN = re.compile(r"`idumb ([a-z][a-z-]*(?: [^`]*)?)`|^(?:    |\$ )idumb ([a-z][^#\n]+)", re.MULTILINE)


def lines() -> Iterator[tuple[str, str]]:
    for page in (page for page in PAGES if source.name_of(page) != GENERATED):
        for span, line in _SPAN.findall(source.text(page)):
            yield source.name_of(page), (span or line).strip()


def problem(line: str) -> str | None:
    """Return the first word of a command line that the program does not know."""
    name, *words = line.split()
    command = main.group.get_command(click.Context(main.group), name)
    if command is None:
        return name
    if isinstance(command, click.Group):
        if words and not words[0].startswith("-") and words[0] not in command.commands:
            return words[0]
        command = command.commands[words[0]] if words and words[0] in command.commands else command
    known = {option for p in command.params if isinstance(p, click.Option) for option in (*p.opts, *p.secondary_opts)}
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    return next((option for option in options if option not in {*known, "--help", "--json"}), None)


def test_every_command_line_of_a_page_exists() -> None:
    found = list(lines())
    assert len(found) > 200
    assert [(page, line, why) for page, line in found if (why := problem(line))] == []


def test_what_does_not_exist_is_noticed() -> None:
    wrong = ("frobnicate 1", "plan old 1", "rollback 1 --bogus", "audit verify --deep")
    assert [problem(line) for line in wrong] == ["frobnicate", "old", "--bogus", "--deep"]
