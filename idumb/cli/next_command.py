"""`idumb next`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("next")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """Show what comes next, and why not the others."""
    return output.finish("next", view.current(), as_json=as_json)
