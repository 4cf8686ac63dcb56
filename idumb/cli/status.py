"""`idumb status`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("status")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """Show the state of every phase."""
    return output.finish("status", view.current(), as_json=as_json)
