"""`idumb check-plan N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("check-plan")
@click.argument("phase")
@options.as_json
@options.debug
def command(phase: str, as_json: bool) -> int:
    """Check the plans of a phase; print every finding.

    Runs nothing and writes nothing. With --json, data.contract_hash is what --approve takes.
    """
    import gc

    gc.disable()
    from idumb.app import check_plan

    with options.services(as_json=as_json) as services:
        result = check_plan.check(services, phase)
    return output.finish("check-plan", result, as_json=as_json)
