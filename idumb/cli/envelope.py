"""`idumb envelope show T1-01`, `idumb envelope diff T1-01 T1-02`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output


@click.command("envelope")
@click.argument("action", type=mistyped.Action(["show", "diff"]))
@click.argument("tasks", nargs=-1, required=True, metavar="TASK [TASK]")
@click.option("--attempt", type=click.IntRange(1), help="Which attempt of the first task; the newest by default.")
@click.option(
    "--with", "other", type=click.IntRange(1), help="diff: which attempt of the second task, or of the only one."
)
@click.option("--run", metavar="ID", help="The run of the first task's attempt; the newest by default.")
@options.as_json
@options.debug
def command(
    action: str, tasks: tuple[str, ...], attempt: int | None, other: int | None, run: str | None, as_json: bool
) -> int:
    """Show what an attempt ran under, or compare two attempts.

    An envelope records everything that an attempt ran under. `show` prints each part with its hash and the text that
    was hashed. `diff` prints the parts that differ between two tasks, or between two attempts of one task (--attempt A
    --with B).
    """
    from idumb.app.reading import envelope_parts
    from idumb.app.reading.envelope_parts import AttemptSelector

    _require_consistent(action, tasks, other)
    with options.services(as_json=as_json) as services:
        first = AttemptSelector(tasks[0], attempt, run)
        if action == "show":
            result = envelope_parts.show(services, first)
        else:
            result = envelope_parts.compare(services, first, AttemptSelector(tasks[-1], other))
    return output.finish("envelope", result, as_json=as_json)


def _require_consistent(action: str, tasks: tuple[str, ...], other: int | None) -> None:
    if len(tasks) > (1 if action == "show" else 2):
        raise click.UsageError(f"envelope {action} takes {'one task' if action == 'show' else 'at most two tasks'}.")
    if action == "show" and other is not None:
        raise click.UsageError("--with is an option of envelope diff.")
    if action == "diff" and len(tasks) == 1 and other is None:
        raise click.UsageError("envelope diff needs a second task, or --with ATTEMPT.")
