"""`idumb verify-work N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("verify-work")
@click.argument("phase")
@options.as_json
@options.debug
def command(phase: str, as_json: bool) -> int:
    """Judge a phase from its success criteria back to evidence.

    Runs the criteria, invariants and tests again on the tree as it stands, and writes the VERIFICATION report.
    """
    from idumb.app import verify_work

    with options.services(as_json=as_json, progress=True) as services:
        result = verify_work.verify(services, phase)
    return output.finish("verify-work", result, as_json=as_json)
