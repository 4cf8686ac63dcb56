"""`idumb execute plan.yaml`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("execute")
@click.argument("file")
@click.option("--force", is_flag=True, help="Run a verified plan again, from the start.")
@click.option("--branch", metavar="NAME", help="Create this branch at HEAD and run there.")
@options.dry_run
@options.running
def command(file: str, force: bool, branch: str | None, dry_run: bool, **flags: Any) -> int:
    """Run a step plan, a YAML or JSON file of tool calls.

    A step plan is strict: approve it with `idumb approve FILE` first. An unfinished run of the same file continues.
    Other commands take the path of the file, from the repository's root, as its phase.

    With --dry-run, everything runs in a copy of the working tree, under the same approval.
    """
    from idumb.app.running import dry_run as rehearsing
    from idumb.app.running import execute_phase

    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        phase = execute_phase.phase_of_step_plan(options.path_from_root(file, services.root))
        request = options.request("execute", phase, flags, force=force, branch=branch, rehearsal=dry_run)
        if dry_run:
            from idumb.composition.rehearsal import Rehearsals

            result = rehearsing.rehearse(services, request, Rehearsals(services))
        else:
            result = execute_phase.execute(services, request)
    return output.finish("execute", result, as_json=flags["as_json"], quiet=flags["events"])
