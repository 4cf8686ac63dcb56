"""`idumb approve N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("approve")
@click.argument("phase")
@click.option(
    "--hash", "expected", metavar="HASH", help="Approve exactly this contract without asking (see check-plan)."
)
@click.option("--expires", metavar="TIME", help="When it ends: 90m, 12h, 7d, 2w, or a date or time (UTC).")
@click.option("--pin-base", is_flag=True, help="Bind it to the commit that the run begins from.")
@click.option(
    "--accept-irreversible",
    "accept",
    multiple=True,
    metavar="TASK",
    help="A task that cannot be taken back and may run all the same. Repeatable.",
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="QUESTION=yes",
    help="Answer a question of the self-check that idumb cannot judge, or for a requirement that nothing states;"
    " several with commas between. Repeatable.",
)
@click.option("--sign", metavar="KEY", help="Sign it with this SSH key (ssh-keygen).")
@click.option("--file", metavar="PATH", help="Write the signed approval to a new file, for another machine.")
@click.option("--revoke", is_flag=True, help="Take every approval of the phase back.")
@options.as_json
@options.debug
@options.persons_word
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
    """Approve a phase as it is now, so that it may run in strict mode.

    Shows everything that the approval is bound to and asks; without a terminal --hash HASH gives it, for a strict
    plan with --answer for each question of the self-check that is not judged. One changed byte
    of a plan, a command's file, the policy, the configuration or an agent's argument list voids it. Runs nothing.
    """
    from idumb.app.review import approve

    if revoke and (expected or expires or pin_base or accept or answers or sign or file):
        raise click.UsageError("--revoke takes no other option but --json")
    with options.services(as_json=as_json, writes=True) as services:
        phase = options.phase_named(phase, services.root)
        if revoke:
            result = approve.revoke(services, phase, options.who())
        else:
            asked = approve.Request(phase, options.who(), expected, expires, pin_base, accept, sign, file, answers)
            result = approve.approve(services, asked)
    return output.finish("approve", result, as_json=as_json)
