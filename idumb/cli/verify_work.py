"""`idumb verify-work N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("verify-work")
@click.argument("phase")
@click.option("--gaps", is_flag=True, help="Write a plan with a task for each criterion that does not hold.")
@click.option("--checks-only", is_flag=True, help="Ask no verifier and no skeptic; the reason says so.")
@options.approve("Consent to exactly these agents: verifier and skeptic.")
@options.as_json
@options.debug
def command(phase: str, gaps: bool, checks_only: bool, approve: tuple[str, ...], as_json: bool) -> int:
    """Judge a phase from its success criteria back to evidence.

    Runs the criteria, invariants and tests again on the tree as it stands, and writes the VERIFICATION report. Criteria
    that only the roadmap or the context file states are listed as unproven. Where agents fill the roles of verifier
    and skeptic, they are asked too: no word of theirs makes a failed check pass, and a refutation that cites a line
    which is there leaves the phase partly verified (`partial`, exit code 1). So does a phase of which nothing is
    proven, because a person accepted or skipped every task. So does a success criterion of the plan that has no proof
    or only an opinion, and a verifier or skeptic that gives no opinion: then a question waits in `idumb decisions`, and
    a person's yes verifies the phase.

    A phase of which some tasks are not done is judged too, as far as it got: it is `partial` or failed, and never
    passed. Tests of tasks that are not done are left out, and no person is asked about their criteria.
    """
    from idumb.app.verify import verify_work

    request = verify_work.Request(phase, gaps=gaps, asks=not checks_only, approve=approve)
    with options.services(as_json=as_json, progress=True) as services:
        result = verify_work.verify(services, request)
    return output.finish("verify-work", result, as_json=as_json)
