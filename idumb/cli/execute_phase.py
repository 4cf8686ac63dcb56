"""`idumb execute-phase N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("execute-phase")
@click.argument("phase")
@click.option("--force", is_flag=True, help="Run a verified phase again, from the start.")
@options.running
def command(
    phase: str,
    force: bool,
    approve: str | None,
    mode: str | None,
    max_attempts: int | None,
    on_deviation: str | None,
    no_verify: bool,
    workspace: str | None,
    events: bool,
    as_json: bool,
) -> int:
    """Run a phase, task by task, and verify it.

    Asks for consent at a terminal; elsewhere --approve HASH gives it. Goes on with an unfinished run of the same
    contract.
    """
    from idumb.app import execute_phase

    if events and as_json:
        raise click.UsageError("--events and --json both want standard output; choose one")
    request = execute_phase.Request(
        phase, approve, mode, max_attempts, on_deviation, not no_verify, force, workspace, "execute-phase"
    )
    with options.services(as_json=as_json, events=events, progress=True) as services:
        result = execute_phase.execute(services, request)
    return output.finish("execute-phase", result, as_json=as_json, quiet=events)
