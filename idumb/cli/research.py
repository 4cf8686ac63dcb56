"""`idumb research N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("research")
@click.argument("phase")
@click.option("--again", is_flag=True, help="Ask again though nothing changed since.")
@click.option("--from", "source", metavar="FILE", help="Take this report; - reads it.")
@click.option("--ask", is_flag=True, help="Show what the researcher would be told; run nothing.")
@options.approve("Consent to exactly this agent.")
@options.as_json
@options.debug
def command(phase: str, source: str | None, approve: tuple[str, ...], *, again: bool, ask: bool, as_json: bool) -> int:
    """Have a phase researched, unless the research that is there still answers to roadmap, project and context."""
    from idumb.app.planning import researching

    if sum((again, ask, source is not None)) > 1:
        raise click.UsageError("--again, --from and --ask exclude each other.")
    offered = None if source is None else options.text_of(source, "research")
    request = researching.Request(phase, again=again, prompt=ask, offered=offered, approve=approve)
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        result = researching.research(services, request, options.teller(as_json=as_json))
    return output.finish("research", result, as_json=as_json)
