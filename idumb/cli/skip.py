"""`idumb skip T1-01 --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("skip")
@click.argument("task")
@click.option("--why", required=True, help="The reason; it is kept in the record.")
@options.as_json
@options.debug
@options.persons_word
def command(task: str, why: str, as_json: bool) -> int:
    """Leave a task out, with a reason.

    What depends on it stays blocked.
    """
    from idumb.app import resume

    with options.services(as_json=as_json, writes=True) as services:
        result = resume.skip(services, task, why, options.who())
    return output.finish("skip", result, as_json=as_json)
