"""`idumb handoff list`, `show ID`, `update ID STATUS`, `stats`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output

_ARGUMENTS = {"list": (), "show": ("ID",), "update": ("ID", "STATUS"), "stats": ()}
_STATUSES = ["pending", "in_progress", "complete", "blocked", "failed"]


@click.command("handoff")
@click.argument("action", type=mistyped.Action([*_ARGUMENTS]))
@click.argument("values", nargs=-1, metavar="[ID] [STATUS]")
@click.option("--run", metavar="ID", help="list, stats: only this run.")
@click.option("--phase", metavar="N", help="list, stats: only this phase.")
@click.option("--status", type=mistyped.Choice(_STATUSES), help="list, stats: only this status.")
@click.option("--agent", metavar="NAME", help="list, stats: only this receiver.")
@click.option("--why", default="", help="update: the reason, which is recorded.")
@options.as_json
@options.debug
def command(
    action: str,
    values: tuple[str, ...],
    run: str | None,
    phase: str | None,
    status: str | None,
    agent: str | None,
    why: str,
    as_json: bool,
) -> int:
    """List, show, update and count handoffs.

    A finished task hands its work to each receiver that the plan lists under "Handoff to".

    ID is the id of a handoff, the beginning of an id, or a task with a single handoff. STATUS is pending, in_progress,
    complete, blocked or failed.
    """
    from idumb.app.reading import handoffs

    if len(values) != len(_ARGUMENTS[action]):
        raise click.UsageError(f"Usage: idumb handoff {' '.join((action, *_ARGUMENTS[action]))}")
    selection = handoffs.HandoffFilter(run, phase, status, agent)
    with options.services(as_json=as_json, writes=action == "update") as services:
        if action == "list":
            result = handoffs.listing(services, selection)
        elif action == "stats":
            result = handoffs.stats(services, selection)
        elif action == "show":
            result = handoffs.show(services, values[0])
        else:
            result = handoffs.update(services, values[0], values[1], options.user_name(), why)
    return output.finish("handoff", result, as_json=as_json)
