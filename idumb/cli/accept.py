"""`idumb accept T1-01 --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("accept")
@click.argument("task")
@click.option("--why", required=True, help="The reason, which is recorded.")
@options.as_json
@options.debug
@options.people_only
def command(task: str, why: str, as_json: bool) -> int:
    """Accept a task as it is, with a reason.

    Commits what the task left, with the reason, so that tasks which depend on it can run. Changes to protected paths
    stay uncommitted and are listed.
    """
    from idumb.app.running import task_overrides

    with options.services(as_json=as_json, writes=True) as services:
        result = task_overrides.accept(services, task, why, options.user_name())
    return output.finish("accept", result, as_json=as_json)
