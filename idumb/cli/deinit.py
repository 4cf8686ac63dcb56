"""`idumb deinit`."""

from __future__ import annotations

import os

import click

from idumb.cli import options, output


@click.command("deinit")
@click.option("--backup", metavar="FOLDER", help="Where to write the backup; by default to your state directory.")
@click.option("--no-backup", is_flag=True, help="Write no backup.")
@click.option("--files", is_flag=True, help="Also remove .idumb/.")
@options.yes
@options.as_json
@options.debug
@options.people_only
def command(backup: str | None, no_backup: bool, files: bool, yes: bool, as_json: bool) -> int:
    """Remove idumb from this repository.

    Writes a backup, then removes the refs below refs/idumb/, the event log, the state of every working tree and your
    approvals for this repository. Commits, branches, plans and reports stay, as does .idumb/ unless you add --files.
    """
    if backup is not None and no_backup:
        raise click.UsageError("Use either --backup or --no-backup.")
    from idumb.app.upkeep import deinit
    from idumb.composition import maintenance

    folder = None if backup is None else os.path.abspath(backup)
    with options.services(as_json=as_json, progress=True) as services:
        kept, own = maintenance.local_data(services)
        request = deinit.Request(yes=yes, backup=folder, keep=not no_backup, files=files)
        result = deinit.deinit(services, kept, own, request)
    return output.finish("deinit", result, as_json=as_json)
