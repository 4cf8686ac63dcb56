"""Writes the list of docs/commands.md from the help of the commands; a test checks that it is up to date."""

from __future__ import annotations

import inspect
import pathlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import click

from idumb.cli import main

PAGE = pathlib.Path(__file__).resolve().parent / "commands.md"
BEGIN = "<!-- commands: begin -->\n"
SHARED = """\
## Shared options

These mean the same in several commands, which name them behind *Also*.
"""
LIKE = "execute-phase"
SEVERAL = 3
"""So many commands must have an option for it to be explained once."""


def page(text: str) -> str:
    """Return the page with its list made again; it is the last part of the page."""
    sections = (section(name, command) for name, command in commands().items())
    return text.partition(BEGIN)[0] + "\n".join([BEGIN + contents(), SHARED, *listed(shared()), "", *sections])


@cache
def commands() -> Mapping[str, click.Command]:
    """Every command and, behind it, its actions, by name."""
    context = click.Context(main.group, info_name="idumb")
    found: dict[str, click.Command] = {}
    for name in main.COMMANDS:
        command = main.group.get_command(context, name)
        assert command is not None
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {word}": one for word, one in command.commands.items()}
    return found


@cache
def shared() -> Sequence[tuple[str, str]]:
    """The options, with their meaning, that several commands have."""
    counted = Counter(row for name, command in commands().items() for row in options(name, command))
    return [row for row, times in counted.items() if times >= SEVERAL]


def options(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    own = click.Context(command, info_name=f"idumb {name}")
    for parameter in command.params:
        record = parameter.get_help_record(own) if isinstance(parameter, click.Option) else None
        if record is not None and record[0] != "--json":
            meaning = record[1].replace("  [required]", "").replace("  [", " [")
            yield record[0].replace("|", " or ").replace("INTEGER RANGE", "N"), meaning


def usage(name: str, command: click.Command) -> list[str]:
    """Return the arguments and the required options."""
    pieces = command.collect_usage_pieces(click.Context(command, info_name=f"idumb {name}"))
    required = (each for each in command.params if isinstance(each, click.Option) and each.required)
    flags = [f"{each.opts[0]} {each.metavar or each.human_readable_name.upper()}" for each in required]
    return [*(piece for piece in pieces if piece != "[OPTIONS]"), *flags]


def listed(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from (f"- `{names}`: {meaning}" for names, meaning in rows)


def contents() -> str:
    rows = [
        f"| {title} | {' · '.join(f'[{name}](#{name})' for name in names)} |" for title, names in main.GROUPS.items()
    ]
    return "\n".join(["| group | commands |", "|---|---|", *rows, ""])


def shared_by(name: str, command: click.Command) -> Sequence[str]:
    return [names.split(" ")[0] for names, meaning in options(name, command) if (names, meaning) in shared()]


def section(name: str, command: click.Command) -> str:
    pieces = usage(name, command)
    help_lines = inspect.cleandoc(command.help or "").replace("\b\n", "").splitlines()
    is_action = " " in name
    lines = [f"### {' '.join([name, *pieces])}" if is_action else f"## {name}", ""]
    if pieces and not is_action and not isinstance(command, click.Group):
        lines += ["    " + " ".join(["idumb", name, *pieces]), ""]
    lines += [*help_lines, ""]
    rows = list(options(name, command))
    if special := [row for row in rows if row not in shared()]:
        lines += [*listed(special), ""]
    if known := shared_by(name, command):
        same = name != LIKE and known == shared_by(LIKE, commands()[LIKE])
        lines += [f"Also: {f'those of {LIKE}' if same else ', '.join(f'`{each}`' for each in known)}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
