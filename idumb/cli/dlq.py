"""`idumb dlq list`, `show ID`, `retry ID`, `remove ID`."""

from __future__ import annotations

import click

from idumb.cli import options, output

_WORDS = {"list": (), "show": ("ID",), "retry": ("ID",), "remove": ("ID",)}


@click.command("dlq")
@click.argument("action", type=click.Choice([*_WORDS]))
@click.argument("words", nargs=-1, metavar="[ID]")
@click.option("--class", "wanted", type=click.Choice(["transient", "permanent", "system"]), help="list: of this class.")
@click.option("--phase", metavar="N", help="list: of this phase.")
@click.option("--agent", metavar="NAME", help="list: built by this binding.")
@click.option("--all", "every", is_flag=True, help="list: also those that are removed, settled or replaced.")
@options.approve("retry: consent to exactly this contract.")
@click.option("--why", default="", help="remove: the reason; it is kept in the record.")
@options.as_json
@options.debug
def command(
    action: str,
    words: tuple[str, ...],
    wanted: str | None,
    phase: str | None,
    agent: str | None,
    every: bool,
    approve: tuple[str, ...],
    why: str,
    as_json: bool,
) -> int:
    """List dead letters: tasks and runs that failed and have no attempt left; try one again, or remove it.

    A failure is transient (the same may succeed another time), permanent (it needs another plan or other files) or
    system (what it runs on must be mended). A retry is one more attempt of the same task under the same checks.
    Removing hides a letter until the task fails again, and discards nothing. ID may be a task.
    """
    from idumb.app.failures import dead_letters

    if len(words) != len(_WORDS[action]):
        raise click.UsageError(f"It is: idumb dlq {' '.join((action, *_WORDS[action]))}")
    with options.services(as_json=as_json, progress=action == "retry", writes=action == "remove") as services:
        if action == "list":
            result = dead_letters.listing(services, dead_letters.Wanted(wanted, phase, agent, every))
        elif action == "show":
            result = dead_letters.show(services, words[0])
        elif action == "retry":
            result = dead_letters.retry(services, words[0], approve)
        else:
            result = dead_letters.remove(services, words[0], options.who(), why)
    return output.finish("dlq", result, as_json=as_json)
