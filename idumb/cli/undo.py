"""`idumb undo`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("undo")
@options.yes
@options.as_json
@options.debug
def command(yes: bool, as_json: bool) -> int:
    """Undo the newest rollback, undo or run.

    Files go back exactly to what they were before it; undoing an undo brings its effect back.
    """
    from idumb.app import rollback

    with options.services(as_json=as_json, progress=True) as services:
        result = rollback.undo(services, yes=yes)
    return output.finish("undo", result, as_json=as_json)
