"""`idumb dlq list`, `show ID`, `retry ID`, `remove ID`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output

_ARGUMENTS = {"list": (), "show": ("ID",), "retry": ("ID",), "remove": ("ID",)}


@click.command("dlq")
@click.argument("action", type=mistyped.Action([*_ARGUMENTS]))
@click.argument("ids", nargs=-1, metavar="[ID]")
@click.option(
    "--class",
    "failure_class",
    type=mistyped.Choice(["transient", "permanent", "system"]),
    help="list: only this class.",
)
@click.option("--phase", metavar="N", help="list: only this phase.")
@click.option("--agent", metavar="NAME", help="list: only tasks that this binding built.")
@click.option("--all", "include_all", is_flag=True, help="list: include removed, settled and replaced ones.")
@options.approve("retry: consent to this contract.")
@click.option("--why", default="", help="remove: the reason, which is recorded.")
@options.as_json
@options.debug
def command(
    action: str,
    ids: tuple[str, ...],
    failure_class: str | None,
    phase: str | None,
    agent: str | None,
    include_all: bool,
    approve: tuple[str, ...],
    why: str,
    as_json: bool,
) -> int:
    """List failed tasks and runs; retry or remove one.

    A dead letter is a task or run that failed and has no attempt left. Its class is transient (a retry may succeed),
    permanent (the plan or the files must change) or system (the machine or its programs must be fixed). `retry` makes
    one more attempt of the same task under the same checks. `remove` hides the letter until the task fails again and
    deletes nothing. ID may be a task.
    """
    from idumb.app.failures import dead_letters

    if len(ids) != len(_ARGUMENTS[action]):
        raise click.UsageError(f"Usage: idumb dlq {' '.join((action, *_ARGUMENTS[action]))}")
    with options.services(as_json=as_json, progress=action == "retry", writes=action == "remove") as services:
        if action == "list":
            result = dead_letters.listing(services, dead_letters.LetterFilter(failure_class, phase, agent, include_all))
        elif action == "show":
            result = dead_letters.show(services, ids[0])
        elif action == "retry":
            result = dead_letters.retry(services, ids[0], approve)
        else:
            result = dead_letters.remove(services, ids[0], options.user_name(), why)
    return output.finish("dlq", result, as_json=as_json)
