"""`idumb install --host claude`."""

from __future__ import annotations

import os

import click

from idumb.cli import mistyped, options, output
from idumb.domain.hosts import BY_NAME


@click.command("install")
@click.option("--host", type=mistyped.Choice(sorted(BY_NAME)), help="The agent host.")
@click.option(
    "--project", "scope", flag_value="project", default="project", help="Install in this repository; the default."
)
@click.option("--user", "scope", flag_value="user", help="Install for you, in every repository.")
@click.option("--remove", is_flag=True, help="Remove the commands.")
@click.option("--list", "listing", is_flag=True, help="List what is installed where, and what is outdated.")
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
@options.as_json
@options.debug
def command(host: str | None, scope: str, remove: bool, listing: bool, dry_run: bool, as_json: bool) -> int:
    """Install idumb's slash commands for an agent host.

    Run it again after you update idumb: it replaces files of an older version. It lists files that you changed or that
    are not idumb's, and leaves them as they are. `idumb help hosts` lists the folders.
    """
    from idumb import __version__
    from idumb.app.upkeep import install
    from idumb.composition import maintenance

    if listing == (host is not None) or (listing and (remove or dry_run)):
        raise click.UsageError("Name a --host, or use --list alone.")
    if not (listing or dry_run):
        options.require_person("idumb install")
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
    """Refuse to install commands in a repository where they could only refuse."""
    from idumb.app.worktree import preconditions

    with options.services(as_json=as_json) as services:
        preconditions.require_supported(services)
