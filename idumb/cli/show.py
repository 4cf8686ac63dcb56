"""`idumb show T1-01`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("show")
@click.argument("task")
@options.as_json
@options.debug
def command(task: str, as_json: bool) -> int:
    """Show a task with its attempts, evidence and checkpoint."""
    from idumb.app.reading import show

    with options.services(as_json=as_json) as services:
        result = show.show(services, task)
    return output.finish("show", result, as_json=as_json)
