"""`idumb resume N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("resume")
@click.argument("phase")
@click.option("--retry-failed", is_flag=True, help="Try failed tasks again.")
@options.running
def command(
    phase: str,
    retry_failed: bool,
    approve: str | None,
    mode: str | None,
    max_attempts: int | None,
    on_deviation: str | None,
    no_verify: bool,
    workspace: str | None,
    events: bool,
    as_json: bool,
) -> int:
    """Go on with a phase after an interruption, a failure or an answer.

    Completed tasks are not run again; the task that was cut short starts anew from its base.
    """
    from idumb.app import resume
    from idumb.app.execute_phase import Request

    if events and as_json:
        raise click.UsageError("--events and --json both want standard output; choose one")
    request = Request(phase, approve, mode, max_attempts, on_deviation, not no_verify, False, workspace, "resume")
    with options.services(as_json=as_json, events=events, progress=True) as services:
        result = resume.resume(services, request, retry_failed=retry_failed)
    return output.finish("resume", result, as_json=as_json, quiet=events)
