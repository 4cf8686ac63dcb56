"""`idumb check-plan N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("check-plan")
@click.argument("phase")
@click.option("--hash", "expected", metavar="HASH", help="Refuse unless phase, contract or its one plan has this hash.")
@click.option(
    "--mode", type=click.Choice(["guided", "strict"]), help="Judge as in this mode; a strict plan stays strict."
)
@click.option("--verbose", is_flag=True, help="Add the hashes, the self-check and the next free id.")
@options.as_json
@options.debug
def command(phase: str, expected: str | None, mode: str | None, verbose: bool, as_json: bool) -> int:
    """Check the plans of a phase; print every finding, or the contract hash and the next command.

    Runs nothing and writes nothing. With --json, data.contract_hash is what --approve takes.

    It names plans and settings that are not in git, with the command that adds them: reports are committed, and a
    clone would have them without the plan.
    """
    import gc

    gc.disable()
    from idumb.app.review import check_plan

    with options.services(as_json=as_json) as services:
        result = check_plan.check(services, options.phase_named(phase, services.root), expected=expected, mode=mode)
    return output.finish("check-plan", result, shown_as="check-plan --verbose" if verbose else None, as_json=as_json)
