"""`idumb cancel`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("cancel")
@click.option("--force", is_flag=True, help="Stop a command that does not respond, or one on another machine.")
@options.as_json
@options.debug
@options.people_only
def command(force: bool, as_json: bool) -> int:
    """Stop the command that runs in this working tree.

    Run it in another terminal. The run stops at the next safe point and records that; `idumb resume` continues it. With
    --force, a process on this machine that does not respond is killed, and one on another machine can no longer write.
    """
    from idumb.app.running import cancel

    with options.services(as_json=as_json) as services:
        result = cancel.cancel(services, force=force, by=options.user_name())
    return output.finish("cancel", result, as_json=as_json)
