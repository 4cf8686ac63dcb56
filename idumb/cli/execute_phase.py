"""`idumb execute-phase N`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("execute-phase")
@click.argument("phase")
@click.option("--force", is_flag=True, help="Run a verified phase again, from the start.")
@click.option("--branch", metavar="NAME", help="Begin the run on this branch, made where HEAD is.")
@options.running
def command(phase: str, force: bool, branch: str | None, **flags: Any) -> int:
    """Run a phase, task by task, and verify it.

    Asks for consent at a terminal; elsewhere --approve HASH gives it. Goes on with an unfinished run of the same
    contract.
    """
    from idumb.app import execute_phase

    request = options.request("execute-phase", phase, flags, force=force, branch=branch)
    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        result = execute_phase.execute(services, request)
    return output.finish("execute-phase", result, as_json=flags["as_json"], quiet=flags["events"])
