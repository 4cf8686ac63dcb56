"""`idumb log`."""

from __future__ import annotations

import click

from idumb.cli import options, output


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an ISO 8601 date or time in the spelling of the log, in UTC. Other spellings would match no event."""
    from datetime import UTC, datetime

    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time. Write 2026-01-31 or 2026-01-31T12:00:00Z.", ctx, param
        ) from None
    utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@click.command("log")
@click.argument("phase", required=False)
@click.option("--run", help="Only events of this run.")
@click.option("--task", help="Only events of this task.")
@click.option(
    "--kind",
    help="Only events of this kind (attempt.started) or alias (step_started); idumb help events lists them.",
)
@click.option("--since", metavar="TIME", callback=moment, help="Only events at or after this time (ISO 8601, UTC).")
@click.option("--until", metavar="TIME", callback=moment, help="Only events at or before this time.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many of the newest events to show.",
)
@options.as_json
@options.debug
def command(
    phase: str | None,
    run: str | None,
    task: str | None,
    kind: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Show the events of a run.

    Shows the newest run of the phase, or the run that --run names.
    """
    from idumb.app.reading import event_history

    with options.services(as_json=as_json) as services:
        result = event_history.list_events(
            services, phase=phase, run=run, task=task, kind=kind, since=since, until=until, limit=limit
        )
    return output.finish("log", result, as_json=as_json)
