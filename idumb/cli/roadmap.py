"""`idumb roadmap`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("roadmap")
@click.option("--add", "title", metavar="TITLE", help="Add a phase at the end.")
@click.option("--insert", "inserted", metavar="TITLE", help="Add a phase after the one that --after names.")
@click.option(
    "--after", metavar="PHASE", help="With --insert: the phase before the new one. After 6, the new phase is 06.1."
)
@click.option("--goal", default="", metavar="TEXT", help="The goal of the new phase: what is true when it is done.")
@options.as_json
@options.debug
def command(title: str | None, inserted: str | None, after: str | None, goal: str, as_json: bool) -> int:
    """List the phases with their state, or add one."""
    if title is not None and inserted is not None:
        raise click.UsageError("Use either --add or --insert.")
    if (inserted is None) != (after is None):
        raise click.UsageError("Use --insert TITLE and --after PHASE together.")
    new = title if inserted is None else inserted
    if new is None:
        if goal:
            raise click.UsageError("--goal needs --add or --insert.")
        return output.finish("roadmap", view.current(), as_json=as_json)
    from idumb.app.core.result import Result
    from idumb.app.planning import roadmap
    from idumb.composition import status_view

    with options.services(as_json=as_json, writes=True) as services:
        added = roadmap.add(services, new, goal, after)
        shown = status_view.refresh(services)
    return output.finish("roadmap", Result({**shown, "added": added}), as_json=as_json)
