"""`idumb init`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("init")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """Set idumb up in this repository.

    Creates .idumb/ and .planning/ files that are missing. Never overwrites, and leaves .gitignore and git's own
    files alone; safe to repeat.
    """
    from idumb.app.upkeep import init
    from idumb.composition import maintenance

    with options.services(as_json=as_json) as services:
        result = init.init(services, maintenance.project_templates())
    return output.finish("init", result, as_json=as_json)
