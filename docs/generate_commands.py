"""Writes docs/commands.md from the commands themselves: `python docs/generate_commands.py`, checked by a test."""

from __future__ import annotations

import inspect
import pathlib
import sys

import click

from idumb.cli import main

PAGE = pathlib.Path(__file__).resolve().parent / "commands.md"
INTRODUCTION = """\
# Commands

Made from the program by `python docs/generate_commands.py`; do not edit by hand.

Every command takes `--json` and then prints exactly one object ([json.md](json.md)). Exit codes are in
[exit-codes.md](exit-codes.md). Progress and complaints go to standard error.
"""


def page() -> str:
    context = click.Context(main.group, info_name="idumb")
    return "\n".join([INTRODUCTION, *(section(context, name) for name in main.COMMANDS)])


def section(context: click.Context, name: str) -> str:
    command = main.group.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=f"idumb {name}")
    usage = " ".join(["idumb", name, *command.collect_usage_pieces(own)])
    lines = [f"## {name}", "", f"    {usage}", "", *inspect.cleandoc(command.help or "").splitlines(), ""]
    options = [p for p in command.params if isinstance(p, click.Option)]
    rows = [record for p in options if (record := p.get_help_record(own)) is not None]
    if rows:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{names.replace('|', ' or ')}` | {text} |" for names, text in rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
