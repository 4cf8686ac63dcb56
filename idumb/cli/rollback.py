"""`idumb rollback N --to T1-02`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("rollback")
@click.argument("phase")
@click.option("--to", required=True, metavar="TASK", help="The task after which to stand, or `start`.")
@click.option(
    "--past",
    multiple=True,
    metavar="TASK",
    help="An irreversible task whose files go back although its effect remains. Repeatable.",
)
@options.accept_git
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(phase: str, to: str, past: tuple[str, ...], accept_git: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Go back to the checkpoint after a task, or to the start.

    Only files that the rolled-back tasks changed are put back, the present is kept first, the branch gets a new
    commit, and idumb undo brings everything back. The commands of compensatable tasks run first; an irreversible
    task refuses unless --past names it.
    """
    from idumb.app.history import rollback

    with options.services(as_json=as_json, progress=True) as services:
        result = rollback.rollback(services, phase, to, yes=yes, past=past, accept_git=accept_git)
    return output.finish("rollback", result, as_json=as_json)
