"""The commands that show how runs go and went: watch, metrics, debug."""

from __future__ import annotations

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options


@options.command("watch")
@click.argument("phase", required=False, shell_complete=arguments.phases)
@click.option("--once", is_flag=True, help="Show the run as it is now, and end.")
@click.option("--bell", is_flag=True, help="Ring the terminal when the run ends or waits for you.")
@options.view("all", "Show every phase as idumb status does, with the newest events.", "everything")
def watch_command(phase: str | None, view: str | None, *, once: bool, bell: bool) -> Result:
    """Watch a run that another process works on.

    Shows the run that works here, or that of a phase: each task, its time, and what fails. It changes nothing, and goes
    on with the next run until you press Ctrl-C. Without a terminal it prints lines, and ends with the run.
    """
    if view is not None and (phase is not None or bell):
        raise click.UsageError("--all shows every phase, and rings no bell.")
    from idumb.cli import watching

    as_json = options.flag("as_json")
    with options.services() as services:
        if view is not None:
            return watching.everything(services, once=once or as_json)
        if once or as_json:
            return watching.once(services, phase, as_json=as_json)
        return watching.follow(services, phase, bell=bell)


@options.command("metrics")
@click.option("--since", metavar="TIME", callback=arguments.moment, help="Only from this time on (ISO 8601, UTC).")
@options.view("prometheus", "Print the figures as Prometheus reads them.")
def metrics_command(since: str | None, view: str | None) -> Result:
    """Show figures over all runs: how tasks end, what agents use.

    Also how long people were waited for. Counts the runs that the event log has, without archived ones. What an agent
    did not report is not in the sums.
    """
    if since and view:
        raise click.UsageError("Prometheus counts from the beginning; leave out --since.")
    from idumb.app.reading import metrics

    with options.services() as services:
        return metrics.metrics(services, since)


_TEXT = """\
Look into the events of a run.

RUN is a phase, whose newest run it is, or the beginning of the id of a run. What is known about a failed task is in
idumb show TASK --debug."""
debug_command = options.Group("debug", help=_TEXT)


@options.command("inspect", "app.reading.debugging.inspect", group=debug_command, opens=options.READS)
@click.argument("name", metavar="RUN")
@click.option("--at", type=click.IntRange(1), metavar="EVENT", help="After this event; by default after the newest.")
def inspect_command() -> None:
    """Show the state of a run after an event, rebuilt from its events."""


@options.command("replay", "app.upkeep.run_integrity.rebuilt", group=debug_command, opens=options.READS)
@click.argument("name", metavar="RUN")
def replay_command() -> None:
    """Rebuild the state of a run, and compare it with the records.

    Names the first event from which they differ; exit code 1 then.
    """


@options.command("compare", "app.reading.debugging.compare", group=debug_command, opens=options.READS)
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="OTHER")
def compare_command() -> None:
    """Show two runs side by side, and the settings that differ."""


@options.command("trace", "app.reading.debugging.trace", group=debug_command, opens=options.READS)
@click.argument("name", metavar="TASK", shell_complete=arguments.tasks)
@click.option("--run", metavar="RUN", help="In this run; by default in the newest one.")
def trace_command() -> None:
    """Show how long each stage of a task took.

    The stages are: built, judged, delivered, waited for people.
    """


@options.command("validate", "app.upkeep.run_integrity.validate", group=debug_command, opens=options.READS)
@click.argument("name", metavar="RUN")
def validate_command() -> None:
    """Check the events of a run, and what they name in git.

    Checks their chain, order and payloads. Exit code 1 means that an event is not valid.
    """


@options.command("export", "cli.telemetry.export", group=debug_command, opens=options.READS)
@click.argument("name", metavar="RUN")
def export_command() -> None:
    """Send a run as a trace to a collector of OpenTelemetry.

    Spans of the run, its tasks, attempts and agent calls go to OTEL_EXPORTER_OTLP_ENDPOINT (http/protobuf; by default
    http://localhost:4318), with model, tokens and cost. Needs the extra: pip install 'idumb[otel]'.
    """
