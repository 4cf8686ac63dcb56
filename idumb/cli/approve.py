"""`idumb approve N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("approve")
@click.argument("phase")
@click.option(
    "--hash", "expected", metavar="HASH", help="Approve the contract with this hash without asking (see check-plan)."
)
@click.option("--expires", metavar="TIME", help="When the approval expires: 90m, 12h, 7d, 2w, or a date or time (UTC).")
@click.option("--pin-base", is_flag=True, help="Bind the approval to the current commit.")
@click.option(
    "--accept-irreversible",
    "accept",
    multiple=True,
    metavar="TASK",
    help="Allow a task that cannot be undone. Repeatable.",
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="QUESTION=yes",
    help="Answer a self-check question that idumb cannot judge, or vouch for a requirement without a text. Separate"
    " several with commas. Repeatable.",
)
@click.option("--sign", metavar="KEY", help="Sign the approval with this SSH key (ssh-keygen).")
@click.option("--file", metavar="PATH", help="Write the signed approval to a new file, for another machine.")
@click.option("--revoke", is_flag=True, help="Revoke every approval of the phase.")
@options.as_json
@options.debug
@options.people_only
def command(
    phase: str,
    expected: str | None,
    expires: str | None,
    pin_base: bool,
    accept: tuple[str, ...],
    answers: tuple[str, ...],
    sign: str | None,
    file: str | None,
    revoke: bool,
    as_json: bool,
) -> int:
    """Approve a phase for strict mode, or revoke its approvals.

    Shows everything that the approval binds, then asks. Without a terminal, --hash HASH approves; a strict plan also
    needs an --answer to each self-check question that idumb cannot judge. The approval is void as soon as one byte
    changes in a plan, in a file that a command names, in the policy, in the configuration or in an agent's arguments.
    Runs nothing.
    """
    from idumb.app.review import approve

    if revoke and (expected or expires or pin_base or accept or answers or sign or file):
        raise click.UsageError("--revoke allows no other option except --json.")
    with options.services(as_json=as_json, writes=True) as services:
        phase = options.phase_id(phase, services.root)
        if revoke:
            result = approve.revoke(services, phase, options.user_name())
        else:
            request = approve.Request(
                phase, options.user_name(), expected, expires, pin_base, accept, sign, file, answers
            )
            result = approve.approve(services, request)
    return output.finish("approve", result, as_json=as_json)
