"""`idumb execute-phase N`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("execute-phase")
@click.argument("phase")
@click.option("--force", is_flag=True, help="Run a verified phase again, from the start.")
@click.option("--branch", metavar="NAME", help="Begin the run on this branch, made where HEAD is.")
@options.dry_run
@options.running
def command(phase: str, force: bool, branch: str | None, dry_run: bool, **flags: Any) -> int:
    """Run a phase, task by task, and verify it.

    Asks for consent at a terminal; elsewhere --approve HASH gives it. Goes on with an unfinished run of the same
    contract.

    With --dry-run everything runs in a copy of the work tree, without the files that git ignores: consent is needed
    as for a run, for commands are run, and is not kept. Tasks for a person and those with effects outside the files
    are left out and listed.
    """
    from idumb.app import dry_run as rehearsing
    from idumb.app import execute_phase

    request = options.request("execute-phase", phase, flags, force=force, branch=branch, rehearsal=dry_run)
    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        if dry_run:
            from idumb.rehearsal import Rehearsals

            result = rehearsing.rehearse(services, request, Rehearsals(services))
        else:
            result = execute_phase.execute(services, request)
    return output.finish("execute-phase", result, as_json=flags["as_json"], quiet=flags["events"])
