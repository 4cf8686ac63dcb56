"""`idumb amend N`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

import click

from idumb.cli import options, output

_PAIR = (str, str)


@click.command("amend")
@click.argument("phase")
@click.option(
    "--add-task",
    "tasks",
    multiple=True,
    metavar="FILE",
    help="Add the tasks in FILE, written as in a plan; - reads standard input.",
)
@click.option(
    "--widen",
    type=_PAIR,
    multiple=True,
    metavar="TASK CLAIM",
    help="Allow a task more files, for example: --widen T1-03 'modify a.py'.",
)
@click.option(
    "--accept-deviation",
    "deviations",
    type=_PAIR,
    multiple=True,
    metavar="TASK PATH",
    help="Add a file that the task changed to its declared files.",
)
@click.option(
    "--drop-dependency",
    "drops",
    type=_PAIR,
    multiple=True,
    metavar="TASK TASK",
    help="Remove the dependency of the first task on the second.",
)
@click.option("--decision", "decisions", multiple=True, metavar="TEXT", help="Add a line to the decisions of the plan.")
@click.option("--from-file", is_flag=True, help="Adopt the changes that you made to the plan files.")
@click.option("--plan", metavar="ID", help="The plan that receives tasks and decisions; the last one by default.")
@click.option("--why", default="", help="The reason, which is recorded.")
@click.option("--hash", "agreed", metavar="HASH", help="Agree to the amended contract with this hash.")
@options.yes
@options.as_json
@options.debug
@options.people_only
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
    """Change a locked plan; its run continues under it.

    Shows the difference and asks before anything is written. Completed tasks, and what they relied on, cannot change.
    Everything is checked again; only the amended lines of the plan are rewritten, and the run continues under the next
    version of its contract.
    """
    from idumb.app.review import amend
    from idumb.domain.amendment import ADD, DECIDE, DROP, WIDEN, Amendment, parse_claim

    amendments = [Amendment(WIDEN, task, claim=parse_claim(text)) for task, text in widen]
    amendments += [Amendment(DROP, task, other) for task, other in drops]
    amendments += [Amendment(ADD, None, _read(name)) for name in tasks]
    amendments += [Amendment(DECIDE, None, text) for text in decisions]
    if not all(text.strip() for text in decisions):
        raise click.UsageError("--decision needs a text.")
    if from_file and (amendments or deviations):
        raise click.UsageError("--from-file adopts the plan as it is; the other amendments write to it. Choose one.")
    command_line = [
        *("idumb", "amend", phase),
        *(["--from-file"] if from_file else []),
        *(["--plan", plan] if plan else []),
        *_repeated("--widen", widen),
        *_repeated("--drop-dependency", drops),
        *_repeated("--accept-deviation", deviations),
        *_repeated("--add-task", [(name,) for name in tasks]),
        *_repeated("--decision", [(text,) for text in decisions]),
        *(["--why", why] if why else []),
    ]
    with options.services(as_json=as_json, writes=True) as services:
        phase = options.phase_id(phase, services.root)
        again = shlex.join(command_line)
        request = amend.Request(phase, tuple(amendments), deviations, from_file, plan, why, yes, agreed, again)
        result = amend.amend(services, request, options.user_name())
    return output.finish("amend", result, as_json=as_json)


def _repeated(option: str, values: Iterable[tuple[str, ...]]) -> list[str]:
    return [word for value in values for word in (option, *value)]


def _read(name: str) -> str:
    """Return the text of a file, or of standard input for `-`."""
    from idumb.domain.errors import InputError

    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(name, encoding="utf-8", newline="") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError("amend.unreadable", f"Cannot read {name}: {problem}", hint="idumb amend --help") from problem
