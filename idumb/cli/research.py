"""`idumb research N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("research")
@click.argument("phase")
@click.option("--again", is_flag=True, help="Research again even if nothing changed.")
@click.option("--from", "source", metavar="FILE", help="Use this report; - reads standard input.")
@click.option("--ask", is_flag=True, help="Print the researcher's prompt; run nothing.")
@options.approve("Consent to this agent.")
@options.as_json
@options.debug
def command(phase: str, source: str | None, approve: tuple[str, ...], *, again: bool, ask: bool, as_json: bool) -> int:
    """Research a phase before it is planned.

    Does nothing if roadmap, project and context have not changed since the last research.
    """
    from idumb.app.planning import phase_research

    if sum((again, ask, source is not None)) > 1:
        raise click.UsageError("Use only one of --again, --from and --ask.")
    offered = None if source is None else options.read_text(source, "research")
    request = phase_research.Request(phase, again=again, prompt=ask, offered=offered, approve=approve)
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        result = phase_research.research(services, request, options.progress_writer(as_json=as_json))
    return output.finish("research", result, as_json=as_json)
