"""`idumb doctor`."""

from __future__ import annotations

import contextlib

import click

from idumb.cli import options, output


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without losing anything.")
@click.option("--mend", is_flag=True, hidden=True)  # the old name of --fix
@options.as_json
@options.debug
def command(fix: bool, mend: bool, as_json: bool) -> int:
    """Examine everything a run stands on: programs, repository, locks, disk, event log, refs, plans, projections.

    Reads only and runs nothing of the repository, so it works where other commands refuse. Exit code 1 means that
    there are problems. With --fix it does what is safe and prints one line for each thing done. What it replaces is
    set aside in the git folder; your files, your branch and your index are never touched.
    """
    from idumb.app.upkeep import doctor
    from idumb.composition import maintenance
    from idumb.domain.errors import Refusal

    with contextlib.ExitStack() as stack:
        try:
            services = stack.enter_context(options.services(as_json=as_json, progress=fix or mend))
        except Refusal as refusal:
            result = doctor.outside(refusal, maintenance.machine_checks())
        else:
            result = doctor.doctor(services, maintenance.health_checks(services), mend=fix or mend)
    return output.finish("doctor", result, as_json=as_json)
