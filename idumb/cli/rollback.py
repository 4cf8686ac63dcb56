"""`idumb rollback N --to T1-02`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("rollback")
@click.argument("phase")
@click.option("--to", required=True, metavar="TASK", help="The task whose checkpoint to return to, or `start`.")
@click.option(
    "--past",
    multiple=True,
    metavar="TASK",
    help="Roll back past this irreversible task, although its effects remain. Repeatable.",
)
@options.accept_git
@options.yes
@options.as_json
@options.debug
@options.people_only
def command(phase: str, to: str, past: tuple[str, ...], accept_git: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Return to the checkpoint after a task, or to the start.

    Saves the current state, restores only the files that the rolled-back tasks changed, and adds a commit to the
    branch. `idumb undo` reverses it. The rollback commands of compensatable tasks run first. To roll back past an
    irreversible task, name it with --past.
    """
    from idumb.app.history import rollback

    with options.services(as_json=as_json, progress=True) as services:
        result = rollback.rollback(services, phase, to, yes=yes, past=past, accept_git=accept_git)
    return output.finish("rollback", result, as_json=as_json)
