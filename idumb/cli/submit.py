"""`idumb submit T`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("submit")
@click.argument("task")
@click.option("--say", default="", metavar="TEXT", help="What you say of your work; kept with the record.")
@click.option(
    "--on-deviation",
    type=click.Choice(["accept", "halt"]),
    help="What to do with changes outside the task's declared files.",
)
@click.option("--no-verify", is_flag=True, help="Do not go on to verify-work after the last task.")
@options.approve("Consent to exactly this contract (see check-plan).")
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
    """Have the work on a begun task judged.

    What counts is the bytes that are there: declared files against changed ones, then every gate and check. Exit code 0
    where the task is accepted, 1 with feedback where it is not, 5 where a person is asked.
    """
    from idumb.app.editor import submitting
    from idumb.app.running.execute_phase import Request

    request = Request(
        "",
        approve=approve,
        on_deviation=on_deviation,
        verify=not no_verify,
        accept_git=accept_git,
        accept_changed=accept_changed,
    )
    with options.services(as_json=as_json, progress=True) as services:
        result = submitting.submit(services, submitting.Submit(task, request, say))
    return output.finish("submit", result, as_json=as_json)
