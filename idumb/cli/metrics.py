"""`idumb metrics N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("metrics")
@click.argument("phase")
@options.as_json
@options.debug
def command(phase: str, as_json: bool) -> int:
    """Show the time, tokens and money that agents used.

    Lists every call of the phase's newest run, with totals. The numbers come from the agents; what an agent did not
    report is shown as unknown.
    """
    from idumb.app.reading import metrics

    with options.services(as_json=as_json) as services:
        result = metrics.metrics(services, phase)
    return output.finish("metrics", result, as_json=as_json)
