"""`idumb undo`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("undo")
@click.option(
    "--operation",
    metavar="ID",
    help="The operation to undo, if it is not your newest one; the error of undo --yes names it.",
)
@options.accept_git
@options.yes
@options.as_json
@options.debug
@options.people_only
def command(operation: str | None, accept_git: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Undo the newest rollback, undo or run.

    Prints the phase, the operation and the files that will change, then asks. --yes undoes only your newest operation;
    if the newest one is not yours, undo refuses and names the --operation ID to use. Restores files exactly as they
    were before the operation. To redo, undo the undo.
    """
    from idumb.app.history import undo

    with options.services(as_json=as_json, progress=True) as services:
        request = undo.Request(yes, operation, accept_git, options.progress_writer(as_json=as_json))
        result = undo.undo(services, request)
    return output.finish("undo", result, as_json=as_json)
