"""`idumb pause N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("pause")
@click.argument("phase")
@click.option("--why", default="", metavar="REASON", help="The reason, which is kept and shown.")
@options.as_json
@options.debug
def command(phase: str, why: str, as_json: bool) -> int:
    """Let a run wait until idumb resume, and show the ways on.

    A run that is at work stops after the task that it is at, with its checkpoint; this command does not wait for
    that. Where nothing runs, the run is marked: it goes on by idumb resume alone.
    """
    from idumb.app.running import pause

    with options.services(as_json=as_json, writes=True) as services:
        result = pause.pause(services, phase, why=why, by=options.who())
    return output.finish("pause", result, as_json=as_json)
