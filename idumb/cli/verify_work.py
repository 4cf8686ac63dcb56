"""`idumb verify-work N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("verify-work")
@click.argument("phase")
@click.option("--gaps", is_flag=True, help="Write a plan with a task for each criterion that failed.")
@click.option("--checks-only", is_flag=True, help="Do not ask verifier and skeptic; the report says so.")
@options.approve("Consent to these agents: verifier and skeptic.")
@options.as_json
@options.debug
def command(phase: str, gaps: bool, checks_only: bool, approve: tuple[str, ...], as_json: bool) -> int:
    """Verify a phase against its success criteria.

    Runs the criteria, invariants and tests again on the current tree and writes the VERIFICATION report. Criteria that
    only the roadmap or the context file states are listed as unproven. If agents are bound to the verifier and skeptic
    roles, they are asked too; they cannot make a failed check pass.

    The result is `partial`, with exit code 1, in these cases:

    \b
    - a refutation cites a line that exists
    - nothing is proven, because every task was accepted or skipped
    - a success criterion of the plan has no proof, or only an opinion
    - the verifier or the skeptic gives no opinion

    In the last two cases a question waits in `idumb decisions`, and your yes verifies the phase.

    An unfinished phase is verified as far as it got: it is `partial` or failed, never passed. Tests of tasks that are
    not done are omitted, and nobody is asked about their criteria.
    """  # noqa: D301 - click keeps the lines of a list behind this character
    from idumb.app.verify import verify_work

    request = verify_work.Request(phase, gaps=gaps, asks=not checks_only, approve=approve)
    with options.services(as_json=as_json, progress=True) as services:
        result = verify_work.verify(services, request)
    return output.finish("verify-work", result, as_json=as_json)
