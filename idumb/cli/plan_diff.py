"""`idumb plan-diff N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("plan-diff")
@click.argument("phase")
@options.as_json
@options.debug
def command(phase: str, as_json: bool) -> int:
    """Show what changed in the plans since they were approved or locked, as tasks and fields.

    Runs nothing and writes nothing. The plans are held against the newest word there is: an approval, or the lock of a
    run.
    """
    from idumb.app.contract import plan_changes

    with options.services(as_json=as_json) as services:
        result = plan_changes.show(services, options.phase_named(phase, services.root))
    return output.finish("plan-diff", result, as_json=as_json)
