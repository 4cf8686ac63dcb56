"""`idumb cancel`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("cancel")
@click.option("--force", is_flag=True, help="End an owner that does not answer, or one on another machine.")
@options.as_json
@options.debug
@options.persons_word
def command(force: bool, as_json: bool) -> int:
    """Stop what runs in this work tree, from another terminal.

    The run stops at the next safe point and says so in the log; idumb resume goes on with it. With --force an owner
    of this machine that does not answer is killed, and one on another machine can write no more.
    """
    from idumb.app.running import cancel

    with options.services(as_json=as_json) as services:
        result = cancel.cancel(services, force=force, by=options.who())
    return output.finish("cancel", result, as_json=as_json)
