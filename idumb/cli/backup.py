"""`idumb backup`."""

from __future__ import annotations

import os

import click

from idumb.cli import options, output


@click.command("backup")
@click.argument("file", type=click.Path())
@click.option("--verify", is_flag=True, help="Check the file instead of writing it.")
@options.as_json
@options.debug
def command(file: str, verify: bool, as_json: bool) -> int:
    """Write a backup of the event log, or check one.

    Writes every event, including archived ones, to a new file that can replace store.db. Files and commits are not
    part of it: git keeps those.
    """
    from idumb.app.upkeep import backup

    path = os.path.abspath(file)
    with options.services(as_json=as_json) as services:
        result = backup.verify(services, path) if verify else backup.write(services, path)
    return output.finish("backup", result, as_json=as_json)
