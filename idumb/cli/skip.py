"""`idumb skip T1-01 --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("skip")
@click.argument("task")
@click.option("--why", required=True, help="The reason, which is recorded.")
@options.yes
@options.as_json
@options.debug
@options.people_only
def command(task: str, why: str, yes: bool, as_json: bool) -> int:
    """Skip a task, with a reason.

    The tasks that depend on it stay blocked. They are listed first, and at a terminal you are asked to confirm. To let
    them run, accept the skipped task (`idumb accept`) or remove the dependency (`idumb amend --drop-dependency`).
    """
    from idumb.app.running import task_overrides

    with options.services(as_json=as_json, writes=True) as services:
        tell = options.progress_writer(as_json=as_json)
        result = task_overrides.skip(services, task, why, options.user_name(), yes=yes, tell=tell)
    return output.finish("skip", result, as_json=as_json)
