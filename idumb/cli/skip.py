"""`idumb skip T1-01 --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("skip")
@click.argument("task")
@click.option("--why", required=True, help="The reason; it is kept in the record.")
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(task: str, why: str, yes: bool, as_json: bool) -> int:
    """Leave a task out, with a reason.

    What depends on it stays blocked, and is named before anything is done; at a terminal you are asked. `idumb accept`
    of the skipped task, or `idumb amend --drop-dependency`, lets them run.
    """
    from idumb.app.running import resume

    with options.services(as_json=as_json, writes=True) as services:
        tell = options.teller(as_json=as_json)
        result = resume.skip(services, task, why, options.who(), yes=yes, tell=tell)
    return output.finish("skip", result, as_json=as_json)
