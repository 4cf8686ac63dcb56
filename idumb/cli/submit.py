"""`idumb submit T`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output


@click.command("submit")
@click.argument("task")
@click.option("--say", default="", metavar="TEXT", help="What you say about your work, which is recorded.")
@click.option(
    "--on-deviation",
    type=mistyped.Choice(["accept", "halt"]),
    help="Accept changes outside the declared files, or stop.",
)
@click.option("--no-verify", is_flag=True, help="Do not verify the phase after its last task.")
@options.approve("Consent to this contract (see check-plan).")
@options.accept_git
@options.accept_changed
@options.as_json
@options.debug
def command(
    task: str,
    say: str,
    on_deviation: str | None,
    no_verify: bool,
    approve: tuple[str, ...],
    accept_git: tuple[str, ...],
    accept_changed: tuple[str, ...],
    as_json: bool,
) -> int:
    """Submit your work on a started task.

    idumb judges the files: it compares the changed ones with the declared ones, then runs every gate and check. Exits
    with 0 if the task is accepted, with 1 and feedback if it is not, and with 5 if a person must decide.
    """
    from idumb.app.editor import submit_task
    from idumb.app.running.run_request import Request

    request = Request(
        "",
        approve=approve,
        on_deviation=on_deviation,
        verify=not no_verify,
        accept_git=accept_git,
        accept_changed=accept_changed,
    )
    with options.services(as_json=as_json, progress=True) as services:
        result = submit_task.submit(services, submit_task.Submit(task, request, say))
    return output.finish("submit", result, as_json=as_json)
