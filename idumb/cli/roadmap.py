"""`idumb roadmap`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("roadmap")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """List the phases and where they are."""
    return output.finish("roadmap", view.current(), as_json=as_json)
