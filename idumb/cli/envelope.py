"""`idumb envelope show T1-01`, `idumb envelope diff T1-01 T1-02`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("envelope")
@click.argument("action", type=click.Choice(["show", "diff"]))
@click.argument("tasks", nargs=-1, required=True, metavar="TASK [TASK]")
@click.option("--attempt", type=click.IntRange(1), help="Which attempt of the first task; the newest without it.")
@click.option(
    "--with", "other", type=click.IntRange(1), help="diff: which attempt of the second, or of the only, task."
)
@click.option("--run", metavar="ID", help="Of which run the first task's attempt is; the newest without it.")
@options.as_json
@options.debug
def command(
    action: str, tasks: tuple[str, ...], attempt: int | None, other: int | None, run: str | None, as_json: bool
) -> int:
    """Show what an attempt ran under, or compare two attempts.

    `show` prints each part of the envelope with its hash and the text that was hashed. `diff` prints the parts that
    differ, of two tasks or of two attempts of one task (--attempt A --with B).
    """
    from idumb.app.reading import envelope_parts
    from idumb.app.reading.envelope_parts import Wanted

    _require_sense(action, tasks, other)
    with options.services(as_json=as_json) as services:
        first = Wanted(tasks[0], attempt, run)
        if action == "show":
            result = envelope_parts.show(services, first)
        else:
            result = envelope_parts.compare(services, first, Wanted(tasks[-1], other))
    return output.finish("envelope", result, as_json=as_json)


def _require_sense(action: str, tasks: tuple[str, ...], other: int | None) -> None:
    if len(tasks) > (1 if action == "show" else 2):
        raise click.UsageError(f"envelope {action} has too many tasks: {' '.join(tasks)}")
    if action == "show" and other is not None:
        raise click.UsageError("--with belongs to envelope diff")
    if action == "diff" and len(tasks) == 1 and other is None:
        raise click.UsageError("envelope diff needs two tasks, or --with and the attempt to compare with")
