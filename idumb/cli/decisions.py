"""`idumb decisions`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("decisions")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """List the questions that wait for an answer."""
    from idumb.app import resume

    with options.services(as_json=as_json) as services:
        result = resume.decisions(services)
    return output.finish("decisions", result, as_json=as_json)
