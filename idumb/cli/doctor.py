"""`idumb doctor`."""

from __future__ import annotations

import contextlib

import click

from idumb.cli import options, output


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without any loss.")
@click.option("--mend", is_flag=True, hidden=True)  # the former name of --fix
@options.as_json
@options.debug
def command(fix: bool, mend: bool, as_json: bool) -> int:
    """Check everything that runs depend on, and fix what is safe.

    Checks programs, repository, locks, disk, event log, refs, plans and reports. Only reads, and runs nothing from the
    repository, so it works where other commands refuse. Exit code 1 means that it found problems.

    With --fix it makes the safe repairs and prints one line for each. What it replaces is kept in the git folder. Your
    files, your branch and your index are never touched.
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
