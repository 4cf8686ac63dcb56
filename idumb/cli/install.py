"""`idumb install --host claude`."""

from __future__ import annotations

import os

import click

from idumb.cli import options, output
from idumb.domain.hosts import BY_NAME


@click.command("install")
@click.option("--host", type=click.Choice(sorted(BY_NAME)), help="The agent host.")
@click.option("--project", "scope", flag_value="project", default="project", help="In this repository; the default.")
@click.option("--user", "scope", flag_value="user", help="For you, in every repository.")
@click.option("--remove", is_flag=True, help="Take them away again.")
@click.option("--list", "listing", is_flag=True, help="Show what is installed where, and what is outdated.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@options.as_json
@options.debug
def command(host: str | None, scope: str, remove: bool, listing: bool, dry_run: bool, as_json: bool) -> int:
    """Put idumb's slash commands where an agent host looks for them.

    Say it again after an update of idumb: files of an older version are replaced. A file that you changed, or that is
    not idumb's, is left as it is and named; nothing else of the host is touched. `idumb help hosts` lists the folders.
    """
    from idumb import __version__
    from idumb.app.upkeep import install
    from idumb.composition import maintenance

    if listing == (host is not None) or (listing and (remove or dry_run)):
        raise click.UsageError("Name one --host, or ask for --list alone.")
    if not (listing or dry_run):
        options.require_a_person("idumb install")
    texts, here = maintenance.slash_commands(), os.getcwd()
    if host is None:
        result = install.installed(maintenance.all_command_folders(here), texts, __version__)
    else:
        if scope == "project" and not remove:
            _require_supported(as_json=as_json)
        places = maintenance.command_folders(here, BY_NAME[host], user=scope == "user")
        result = (
            install.remove(places, dry_run=dry_run)
            if remove
            else install.install(places, texts, __version__, dry_run=dry_run)
        )
    return output.finish("install", result, as_json=as_json)


def _require_supported(*, as_json: bool) -> None:
    """Commands that could only refuse are put into no repository."""
    from idumb.app.worktree import preconditions

    with options.services(as_json=as_json) as services:
        preconditions.require_supported(services)
