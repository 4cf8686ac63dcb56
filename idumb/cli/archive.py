"""`idumb archive`."""

from __future__ import annotations

import click

from idumb.cli import options, output
from idumb.cli.log import moment


@click.command("archive")
@click.option("--before", metavar="TIME", callback=moment, help="Archive only events before this time (ISO 8601, UTC).")
@click.option(
    "--keep-runs", type=click.IntRange(1), default=1, show_default=True, help="How many of the newest runs to keep."
)
@options.as_json
@options.debug
def command(before: str | None, keep_runs: int, as_json: bool) -> int:
    """Move old events to compressed files.

    Moves the events that no unfinished run needs. Each file is read back before its events leave the database; log,
    audit and show still read them.
    """
    from idumb.app.upkeep import archive

    with options.services(as_json=as_json) as services:
        result = archive.archive(services, before=before, keep_runs=keep_runs)
    return output.finish("archive", result, as_json=as_json)
