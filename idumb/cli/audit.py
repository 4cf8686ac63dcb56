"""`idumb audit verify`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("audit")
@click.argument("action", type=click.Choice(["verify"]), expose_value=False)
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """Check the event log: every hash again, from the first event to the last.

    Says up to which event the chain is intact, and up to which one the copy in your state directory confirms it. A
    cut after that one shows only against a head that you noted elsewhere.
    """
    from idumb.app import show

    with options.services(as_json=as_json) as services:
        result = show.audit(services)
    return output.finish("audit", result, as_json=as_json)
