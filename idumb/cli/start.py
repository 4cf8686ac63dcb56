"""`idumb start T`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output


@click.command("start")
@click.argument("task")
@click.option("--by", metavar="NAME", help="Who works on the task; by default your user name.")
@click.option("--retry", is_flag=True, help="Retry a task that has no attempt left.")
@options.approve("Consent to this contract (see check-plan).")
@click.option("--approval", metavar="FILE", help="A signed approval (see approve --sign --file).")
@click.option("--mode", type=mistyped.Choice(["guided", "strict"]), help="Override the plan's mode.")
@options.accept_git
@options.accept_changed
@options.as_json
@options.debug
def command(
    task: str,
    by: str | None,
    retry: bool,
    approve: tuple[str, ...],
    approval: str | None,
    mode: str | None,
    accept_git: tuple[str, ...],
    accept_changed: tuple[str, ...],
    as_json: bool,
) -> int:
    """Start a task that you build yourself.

    Saves the whole tree, checks the preconditions, opens an attempt and prints the builder's brief. The attempt stays
    open until `idumb submit` or `idumb give-up`. The builder of the task must be `editor`. If the phase has no run, one
    starts.
    """
    from idumb.app.editor import start_task
    from idumb.app.running.run_request import Request

    request = Request(
        "", approve=approve, approval=approval, mode=mode, accept_git=accept_git, accept_changed=accept_changed
    )
    with options.services(as_json=as_json, progress=True) as services:
        result = start_task.start(services, start_task.Start(task, by or options.user_name(), request, retry))
    return output.finish("start", result, as_json=as_json)
