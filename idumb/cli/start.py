"""`idumb start T`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("start")
@click.argument("task")
@click.option("--by", metavar="NAME", help="Who works on it; your user name where nothing is said.")
@click.option("--retry", is_flag=True, help="Take up a task that failed for good.")
@options.approve("Consent to exactly this contract (see check-plan).")
@click.option("--approval", metavar="FILE", help="A signed approval (see approve --sign --file).")
@click.option("--mode", type=click.Choice(["guided", "strict"]), help="Override the plan's mode.")
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
    """Begin a task that you build yourself; get all that its builder is owed.

    The whole tree is saved, preconditions are checked, and the attempt is open until submit or give-up. For tasks whose
    builder is `editor`. A run of the phase begins where there is none.
    """
    from idumb.app.editor import starting
    from idumb.app.running.execute_phase import Request

    request = Request(
        "", approve=approve, approval=approval, mode=mode, accept_git=accept_git, accept_changed=accept_changed
    )
    with options.services(as_json=as_json, progress=True) as services:
        result = starting.start(services, starting.Start(task, by or options.who(), request, retry))
    return output.finish("start", result, as_json=as_json)
