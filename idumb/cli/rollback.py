"""`idumb rollback N --to T1-02`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("rollback")
@click.argument("phase")
@click.option("--to", required=True, metavar="TASK", help="The task after which to stand, or `start`.")
@options.yes
@options.as_json
@options.debug
def command(phase: str, to: str, yes: bool, as_json: bool) -> int:
    """Go back to the checkpoint after a task, or to the start.

    Only files that the rolled-back tasks changed are put back, the present is kept first, the branch gets a new
    commit, and idumb undo brings everything back.
    """
    from idumb.app import rollback

    with options.services(as_json=as_json, progress=True) as services:
        result = rollback.rollback(services, phase, to, yes=yes)
    return output.finish("rollback", result, as_json=as_json)
