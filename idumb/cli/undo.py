"""`idumb undo`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("undo")
@click.option(
    "--operation",
    metavar="ID",
    help="The operation to undo, when it is not your newest one. The refusal of --yes names it.",
)
@options.accept_git
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(operation: str | None, accept_git: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Undo the newest rollback, undo or run.

    It first names the phase, the operation and the files that change. --yes undoes only your newest operation; when
    that is another one, undo refuses and names the --operation ID to give. Files go back exactly to what they were
    before the operation. Undoing an undo brings its effect back.
    """
    from idumb.app.history import undo

    with options.services(as_json=as_json, progress=True) as services:
        request = undo.Request(yes, operation, accept_git, options.teller(as_json=as_json))
        result = undo.undo(services, request)
    return output.finish("undo", result, as_json=as_json)
