"""`idumb plan-diff N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("plan-diff")
@click.argument("phase")
@options.as_json
@options.debug
def command(phase: str, as_json: bool) -> int:
    """Show how the plans differ from what was approved or locked.

    Compares tasks and fields with the newest approval or the lock of the newest run, whichever is newer. Runs nothing
    and writes nothing.
    """
    from idumb.app.contract import plan_changes

    with options.services(as_json=as_json) as services:
        result = plan_changes.show(services, options.phase_id(phase, services.root))
    return output.finish("plan-diff", result, as_json=as_json)
