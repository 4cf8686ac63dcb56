"""`idumb decide ID CHOICE`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("decide")
@click.argument("decision")
@click.argument("choice")
@click.option("--guidance", default="", help="Words that go with the answer.")
@options.as_json
@options.debug
def command(decision: str, choice: str, guidance: str, as_json: bool) -> int:
    """Answer a question; the run takes the answer up with resume."""
    from idumb.app import resume

    with options.services(as_json=as_json, writes=True) as services:
        result = resume.decide(services, decision, choice, guidance, options.who())
    return output.finish("decide", result, as_json=as_json)
