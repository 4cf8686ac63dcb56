"""`idumb undo`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("undo")
@options.accept_git
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(accept_git: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Undo the newest rollback, undo or run.

    Files go back exactly to what they were before it; undoing an undo brings its effect back.
    """
    from idumb.app import undo

    with options.services(as_json=as_json, progress=True) as services:
        result = undo.undo(services, yes=yes, accept_git=accept_git)
    return output.finish("undo", result, as_json=as_json)
