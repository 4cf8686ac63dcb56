"""The commands of the group Undo: roll a phase back, or undo an operation."""

from __future__ import annotations

from typing import Any

import click

from idumb.app.core.result import Result
from idumb.cli import options


@options.command("rollback", person=True, text="run.rolled_back", opens=options.RUNS)
@options.phase
@click.option("--to", metavar="TASK", help="The task whose checkpoint to return to, or `start`.")
@options.many("--past", "TASK", "Roll back past this irreversible task, although its effects remain.")
@options.accept_git
@options.yes
def rollback_command(services: options.Container, phase: str, to: str | None, **flags: Any) -> Result:
    """Return to the checkpoint after a task, or to the start.

    Saves the current state, restores only the files that the rolled-back tasks changed, and adds a commit to the
    branch. `idumb undo` reverses it. The rollback commands of compensatable tasks run first. To roll back past an
    irreversible task, name it with --past.
    """
    from idumb.app.history import rollback

    return rollback.rollback(services, phase, to, **flags)


@options.command("undo", person=True, text="run.rolled_back", opens=options.RUNS)
@click.option("--operation", metavar="ID", help="The operation to undo; by default the newest one.")
@options.accept_git
@options.yes
def undo_command(services: options.Container, operation: str | None, accept_git: tuple[str, ...], yes: bool) -> Result:
    """Undo the newest rollback, undo or run.

    Shows the phase, the operation and the files that will change, then asks. --yes needs the operation too: without a
    terminal, undo refuses and prints the whole command. Restores files exactly as they were before the operation; an
    operation that is undone already stays undone. To redo, undo the undo.
    """
    from idumb.app.history import undo

    return undo.undo(services, operation, yes=yes, accept_git=accept_git)
