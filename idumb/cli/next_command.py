"""`idumb next [N]`."""

from __future__ import annotations

import click

from idumb.cli import options, output, view


@click.command("next")
@click.argument("phase", required=False)
@options.as_json
@options.debug
def command(phase: str | None, as_json: bool) -> int:
    """Show what comes next, and what the other tasks wait for.

    With a phase, prints the builder's brief for its next task, including the prompt and the feedback on the previous
    attempt.
    """
    if phase is None:
        return output.finish("next", view.current(), as_json=as_json)
    from idumb.app.reading import next_task

    with options.services(as_json=as_json) as services:
        result = next_task.view(services, phase)
    return output.finish("next", result, as_json=as_json)
