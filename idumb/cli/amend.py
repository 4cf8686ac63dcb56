"""`idumb amend N`."""

from __future__ import annotations

import shlex
import sys

import click

from idumb.cli import options, output

_PAIR = (str, str)


@click.command("amend")
@click.argument("phase")
@click.option("--add-task", "tasks", multiple=True, metavar="FILE", help="Tasks in the plan's notation; - reads them.")
@click.option("--widen", type=_PAIR, multiple=True, metavar="TASK CLAIM", help="E.g. --widen T1-03 'modify a.py'.")
@click.option(
    "--accept-deviation",
    "deviations",
    type=_PAIR,
    multiple=True,
    metavar="TASK PATH",
    help="Take a file that the task changed without declaring it into its files.",
)
@click.option(
    "--drop-dependency", "drops", type=_PAIR, multiple=True, metavar="TASK TASK", help="The first needs the second not."
)
@click.option("--decision", "decisions", multiple=True, metavar="TEXT", help="Words for the plan's list of decisions.")
@click.option("--from-file", is_flag=True, help="Take over what was changed in the plans by hand.")
@click.option("--plan", metavar="ID", help="The plan for tasks and decisions; without it the last one.")
@click.option("--why", default="", help="The reason; it is kept in the record.")
@click.option("--hash", "agreed", metavar="HASH", help="Agree to exactly this amended contract.")
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(
    phase: str,
    tasks: tuple[str, ...],
    widen: tuple[tuple[str, str], ...],
    deviations: tuple[tuple[str, str], ...],
    drops: tuple[tuple[str, str], ...],
    decisions: tuple[str, ...],
    from_file: bool,
    plan: str | None,
    why: str,
    agreed: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Change a locked plan while its run goes on: the difference is shown first, then you are asked.

    What is done and what it assumed stays. Everything is checked again, the plan is written where it says so and
    nowhere else, and the same run goes on under the next version of its contract.
    """
    from idumb.app.review import amend
    from idumb.domain.amendment import ADD, DECIDE, DROP, WIDEN, Amendment, claim_of

    named = [Amendment(WIDEN, task, claim=claim_of(text)) for task, text in widen]
    named += [Amendment(DROP, task, other) for task, other in drops]
    named += [Amendment(ADD, None, _read(name)) for name in tasks]
    named += [Amendment(DECIDE, None, text) for text in decisions]
    if not all(text.strip() for text in decisions):
        raise click.UsageError("--decision takes words; there are none in it.")
    if from_file and (named or deviations):
        raise click.UsageError("--from-file takes the plan as it is; the other amendments write into it. Choose one.")
    words = ["idumb", "amend", phase, *(["--from-file"] if from_file else []), *(["--plan", plan] if plan else [])]
    words += [w for one in widen for w in ("--widen", *one)] + [w for one in drops for w in ("--drop-dependency", *one)]
    words += [w for one in deviations for w in ("--accept-deviation", *one)]
    words += [w for one in tasks for w in ("--add-task", one)] + [w for one in decisions for w in ("--decision", one)]
    words += ["--why", why] if why else []
    said = shlex.join(words)
    with options.services(as_json=as_json, writes=True) as services:
        phase = options.phase_named(phase, services.root)
        request = amend.Request(phase, tuple(named), deviations, from_file, plan, why, yes, agreed, said)
        result = amend.amend(services, request, options.who())
    return output.finish("amend", result, as_json=as_json)


def _read(name: str) -> str:
    """The text of a file, or of standard input; what is not UTF-8 is no task."""
    from idumb.domain.errors import InputError

    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(name, encoding="utf-8", newline="") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            "amend.unreadable", f"{name} cannot be read: {problem}", hint="idumb amend --help"
        ) from problem
