"""`idumb plan-phase N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("plan-phase")
@click.argument("phase")
@click.option("--template", "from_template", is_flag=True, help="Ask nobody: write a plan to fill in.")
@click.option("--from", "source", metavar="FILE", help="Take this plan, if it is legal; - reads it.")
@click.option("--gaps", is_flag=True, help="One more plan, for what verify-work found open.")
@click.option("--no-research", is_flag=True, help="Leave research as it is.")
@click.option("--approve", metavar="HASH", help="Consent to exactly these agents.")
@options.as_json
@options.debug
def command(
    phase: str,
    source: str | None,
    approve: str | None,
    *,
    from_template: bool,
    gaps: bool,
    no_research: bool,
    as_json: bool,
) -> int:
    """Write the plan of a phase.

    The planner is given the roadmap, the project, what people said and the research, which is made first where it is
    missing or stale. What it writes is checked as check-plan does, and by the plan-checker where one is bound; findings
    go back to it, for three rounds at most. A plan is written only when it is legal, and never over another.
    """
    from idumb import bootstrap
    from idumb.app import plan_phase

    if from_template and source is not None:
        raise click.UsageError("--template and --from are two plans; choose one.")
    if gaps and from_template:
        raise click.UsageError("--gaps asks the planner, or takes a plan with --from; a template knows no gaps.")
    request = plan_phase.Request(
        phase,
        template=bootstrap.plan_template() if from_template else None,
        offered=None if source is None else _read(source),
        gaps=gaps,
        research=not no_research,
        approve=approve,
    )
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        result = plan_phase.plan_phase(services, request)
    return output.finish("plan-phase", result, as_json=as_json)


def _read(name: str) -> str:
    """The bytes of a file or of standard input, as text; what is not UTF-8 is for the parser to say."""
    import sys

    from idumb.domain.errors import InputError

    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        with open(name, "rb") as stream:
            return stream.read(_LARGEST).decode("utf-8", "surrogateescape")
    except OSError as problem:
        raise InputError(
            "plan.unreadable", f"{name} cannot be read: {problem.strerror}", hint="idumb plan-phase --help"
        ) from problem


_LARGEST = 32 * 1024 * 1024 + 1  # one byte more than a plan may have
