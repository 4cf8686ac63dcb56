"""`idumb deinit`."""

from __future__ import annotations

import os

import click

from idumb.cli import options, output


@click.command("deinit")
@click.option("--backup", metavar="FOLDER", help="Where the backup goes; by default into your state directory.")
@click.option("--no-backup", is_flag=True, help="Write no backup.")
@click.option("--files", is_flag=True, help="Remove .idumb/ too.")
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(backup: str | None, no_backup: bool, files: bool, yes: bool, as_json: bool) -> int:
    """Take idumb out of this repository, for all its work trees.

    The refs below refs/idumb/, the event log, the state of work trees and your consents for this repository go, after
    a backup of all of it. Commits, branches, plans and reports stay, and .idumb/ too unless --files is given.
    """
    if backup is not None and no_backup:
        raise click.UsageError("--backup and --no-backup exclude each other")
    from idumb.app.upkeep import deinit
    from idumb.composition import maintenance

    folder = None if backup is None else os.path.abspath(backup)
    with options.services(as_json=as_json, progress=True) as services:
        kept, own = maintenance.local_data(services)
        request = deinit.Request(yes=yes, backup=folder, keep=not no_backup, files=files)
        result = deinit.deinit(services, kept, own, request)
    return output.finish("deinit", result, as_json=as_json)
