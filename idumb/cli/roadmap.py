"""`idumb roadmap`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("roadmap")
@click.option("--add", "title", metavar="TITLE", help="Put a phase at the end.")
@click.option("--goal", default="", metavar="TEXT", help="With --add: what is true when the phase is done.")
@options.as_json
@options.debug
def command(title: str | None, goal: str, as_json: bool) -> int:
    """List the phases and where they are."""
    if title is None:
        if goal:
            raise click.UsageError("--goal is of a phase that --add puts into the roadmap.")
        return output.finish("roadmap", view.current(), as_json=as_json)
    from idumb import bootstrap
    from idumb.app import roadmap
    from idumb.app.result import Result

    with options.services(as_json=as_json, writes=True) as services:
        added = roadmap.add(services, title, goal)
        shown = bootstrap.fresh_view(services)
    return output.finish("roadmap", Result({**shown, "added": added}), as_json=as_json)
