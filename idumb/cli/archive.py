"""`idumb archive`."""

from __future__ import annotations

import click

from idumb.cli import options, output
from idumb.cli.log import moment


@click.command("archive")
@click.option("--before", metavar="TIME", callback=moment, help="Only events before this time (ISO 8601, UTC).")
@click.option("--keep-runs", type=click.IntRange(1), default=1, show_default=True, help="Keep the newest this many.")
@options.as_json
@options.debug
def command(before: str | None, keep_runs: int, as_json: bool) -> int:
    """Move events that no live run needs from the database to compressed files beside it.

    Each file is checked before its events leave the database, and log, audit and show read it as if they had not.
    """
    from idumb.app.upkeep import archive

    with options.services(as_json=as_json) as services:
        result = archive.archive(services, before=before, keep_runs=keep_runs)
    return output.finish("archive", result, as_json=as_json)
