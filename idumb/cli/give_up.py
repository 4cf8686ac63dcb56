"""`idumb give-up T --why REASON`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("give-up")
@click.argument("task")
@click.option("--why", required=True, help="The reason, which is recorded.")
@options.accept_git
@options.as_json
@options.debug
def command(task: str, why: str, accept_git: tuple[str, ...], as_json: bool) -> int:
    """End a started task without its work.

    Saves the working tree in a snapshot, then restores the task's declared files. Nothing else changes, and the attempt
    does not count.
    """
    from idumb.app.editor import give_up

    with options.services(as_json=as_json, progress=True) as services:
        result = give_up.give_up(services, task, why, options.user_name(), accept_git)
    return output.finish("give-up", result, as_json=as_json)
