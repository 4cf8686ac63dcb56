"""The commands of `idumb debug`: look into the events of a run."""

from __future__ import annotations

import click

from idumb.app.core.result import Result
from idumb.cli import options

_TEXT = """\
Look into the events of a run.

RUN is a phase, whose newest run it is, or the beginning of the id of a run. What is known about a failed task is in
idumb show TASK --debug."""
debug_command = options.Group("debug", help=_TEXT)


@options.command("inspect", group=debug_command, opens=options.READS)
@click.argument("run")
@click.option("--at", type=click.IntRange(1), metavar="EVENT", help="After this event; by default after the newest.")
def inspect_command(services: options.Container, run: str, *, at: int | None) -> Result:
    """Show the state of a run after an event, rebuilt from its events."""
    from idumb.app.reading import debugging

    return debugging.inspect(services, run, at)


@options.command("replay", group=debug_command, opens=options.READS)
@click.argument("run")
def replay_command(services: options.Container, run: str) -> Result:
    """Rebuild the state of a run, and compare it with the records.

    Compares with progress.json, and with what events say of the state before them: attempts, what agents used of
    their ceilings, checkpoints of an earlier run. Names the first event from which they differ; exit code 1 then.
    """
    from idumb.app.upkeep import run_integrity

    return run_integrity.rebuilt(services, run)


@options.command("compare", group=debug_command, opens=options.READS)
@click.argument("run")
@click.argument("other")
def compare_command(services: options.Container, run: str, other: str) -> Result:
    """Show two runs side by side, and the settings that differ.

    Shows the attempts, time, tokens and cost of each task.
    """
    from idumb.app.reading import debugging

    return debugging.compare(services, run, other)


@options.command("trace", group=debug_command, opens=options.READS)
@options.task
@click.option("--run", metavar="RUN", help="In this run; by default in the newest one.")
def trace_command(services: options.Container, task: str, *, run: str | None) -> Result:
    """Show how long each stage of a task took.

    The stages are: built, judged, delivered, waited for people.
    """
    from idumb.app.reading import debugging

    return debugging.trace(services, task, run)


@options.command("validate", group=debug_command, opens=options.READS)
@click.argument("run")
def validate_command(services: options.Container, run: str) -> Result:
    """Check the events of a run, and what they name in git.

    Checks their chain, order and payloads. Exit code 1 means that an event is not valid.
    """
    from idumb.app.upkeep import run_integrity

    return run_integrity.validate(services, run)


@options.command("export", group=debug_command, opens=options.READS)
@click.argument("run")
def export_command(services: options.Container, run: str) -> Result:
    """Send a run as a trace to a collector of OpenTelemetry.

    Spans of the run, its tasks, attempts and agent calls go to OTEL_EXPORTER_OTLP_ENDPOINT (http/protobuf; by default
    http://localhost:4318), with model, tokens and cost. Needs the extra: pip install 'idumb[otel]'.
    """
    from idumb.cli import telemetry

    return telemetry.export(services, run)
