"""`idumb check-plan N`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output


@click.command("check-plan")
@click.argument("phase")
@click.option(
    "--hash", "expected", metavar="HASH", help="Fail unless the phase, its contract or its only plan has this hash."
)
@click.option(
    "--mode", type=mistyped.Choice(["guided", "strict"]), help="Check as for this mode. A strict plan stays strict."
)
@click.option("--verbose", is_flag=True, help="Also print hashes, the self-check and the next free id.")
@options.as_json
@options.debug
def command(phase: str, expected: str | None, mode: str | None, verbose: bool, as_json: bool) -> int:
    """Check the plans of a phase and print every finding.

    Without errors, prints the contract hash and the next command. Runs nothing and writes nothing. With --json,
    data.contract_hash is the hash for --approve.

    Also lists plans and settings that are not in git, with the command that adds them: idumb commits reports, so a
    clone would have the reports without the plan.
    """
    import gc

    gc.disable()
    from idumb.app.review import check_plan

    with options.services(as_json=as_json) as services:
        result = check_plan.check(services, options.phase_id(phase, services.root), expected=expected, mode=mode)
    return output.finish("check-plan", result, shown_as="check-plan --verbose" if verbose else None, as_json=as_json)
