"""`idumb decisions`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("decisions")
@click.option("--remembered", is_flag=True, help="List the answers that idumb remembers and gives without asking.")
@options.as_json
@options.debug
def command(remembered: bool, as_json: bool) -> int:
    """List the questions that wait for you."""
    from idumb.app.running import decisions

    with options.services(as_json=as_json) as services:
        result = decisions.remembered_answers(services) if remembered else decisions.waiting(services)
    return output.finish("decisions", result, as_json=as_json)
