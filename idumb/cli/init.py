"""`idumb init`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("init")
@options.as_json
@options.debug
def command(as_json: bool) -> int:
    """Set up idumb in this repository.

    Creates the missing files of .idumb/ and .planning/. Overwrites nothing and does not touch .gitignore or git's own
    files. Safe to run again.
    """
    from idumb.app.upkeep import init
    from idumb.composition import maintenance

    with options.services(as_json=as_json) as services:
        result = init.init(services, maintenance.project_templates())
    return output.finish("init", result, as_json=as_json)
