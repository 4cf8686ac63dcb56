"""`idumb pause N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("pause")
@click.argument("phase")
@click.option("--why", default="", metavar="REASON", help="The reason, which is recorded and shown.")
@options.as_json
@options.debug
def command(phase: str, why: str, as_json: bool) -> int:
    """Pause the run after the current task.

    The run finishes its current task with a checkpoint, then stops; this command does not wait for that. If the run is
    not active, it is marked as paused. Either way, only `idumb resume` continues it. Lists what you can do next.
    """
    from idumb.app.running import pause

    with options.services(as_json=as_json, writes=True) as services:
        result = pause.pause(services, phase, why=why, by=options.user_name())
    return output.finish("pause", result, as_json=as_json)
