"""`idumb diff T1-01`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("diff")
@click.argument("task")
@options.as_json
@options.debug
def command(task: str, as_json: bool) -> int:
    """Show what a task changed.

    Compares with the files that its first attempt started from.
    """
    from idumb.app.reading import show

    with options.services(as_json=as_json) as services:
        result = show.diff(services, task)
    return output.finish("diff", result, as_json=as_json)
