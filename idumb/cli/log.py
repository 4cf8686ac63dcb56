"""`idumb log`."""

from __future__ import annotations

import click

from idumb.cli import options, output


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A day or a moment in ISO 8601 as the log spells it, in UTC; anything else would silently fit no event."""
    from datetime import UTC, datetime

    if value is None:
        return None
    try:
        given = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time; write 2026-01-31 or 2026-01-31T12:00:00Z", ctx, param
        ) from None
    utc = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@click.command("log")
@click.argument("phase", required=False)
@click.option("--run", help="Events of this run.")
@click.option("--task", help="Events of this task.")
@click.option(
    "--kind",
    help="Events of this kind, such as attempt.started, or of an alias, such as step_started: idumb help events.",
)
@click.option("--since", metavar="TIME", callback=moment, help="Events at or after this time (ISO 8601, UTC).")
@click.option("--until", metavar="TIME", callback=moment, help="Events at or before this time.")
@click.option("-n", "--limit", type=click.IntRange(1), default=100, show_default=True, help="The newest this many.")
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
    """Show the events of a run: of a phase's newest one, or of any by --run."""
    from idumb.app.reading import show

    with options.services(as_json=as_json) as services:
        result = show.log(services, phase=phase, run=run, task=task, kind=kind, since=since, until=until, limit=limit)
    return output.finish("log", result, as_json=as_json)
