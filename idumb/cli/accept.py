"""`idumb accept T1-01 --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("accept")
@click.argument("task")
@click.option("--why", required=True, help="The reason; it is kept in the record.")
@options.as_json
@options.debug
@options.persons_word
def command(task: str, why: str, as_json: bool) -> int:
    """Accept a task as it is, with a reason.

    What it left is committed under that reason, and what depends on it can run. Protected paths stay uncommitted, and
    are named.
    """
    from idumb.app.running import resume

    with options.services(as_json=as_json, writes=True) as services:
        result = resume.accept(services, task, why, options.who())
    return output.finish("accept", result, as_json=as_json)
