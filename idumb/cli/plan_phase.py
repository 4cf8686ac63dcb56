"""`idumb plan-phase N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("plan-phase")
@click.argument("phase")
@click.option("--template", "from_template", is_flag=True, help="Write a plan for you to fill in; ask no agent.")
@click.option("--from", "source", metavar="FILE", help="Use this plan if it is valid; - reads standard input.")
@click.option("--gaps", is_flag=True, help="Write one more plan, for what verify-work found missing.")
@click.option("--ask", is_flag=True, help="Print the planner's prompt; run nothing.")
@click.option("--no-research", is_flag=True, help="Do not update the research.")
@options.approve("Consent to these agents.")
@options.as_json
@options.debug
def command(
    phase: str,
    source: str | None,
    approve: tuple[str, ...],
    *,
    from_template: bool,
    gaps: bool,
    ask: bool,
    no_research: bool,
    as_json: bool,
) -> int:
    """Write the plan of a phase.

    The planner receives the roadmap, the project, your answers and the research, which is updated first if it is
    missing or stale. Its plan is checked as by check-plan, and by the plan-checker if one is bound; findings go back to
    the planner, for three rounds at most. Only a valid plan is written, and none is overwritten.

    With --ask, nothing is run or written: give the prompt to any agent, and its answer to --from.
    """
    from idumb.app.planning import plan_phase
    from idumb.composition import maintenance

    if sum((from_template, ask, source is not None)) > 1:
        raise click.UsageError("Use only one of --template, --from and --ask.")
    if gaps and from_template:
        raise click.UsageError("--gaps needs a planner or --from; a template cannot fill gaps.")
    request = plan_phase.Request(
        phase,
        template=maintenance.plan_template() if from_template else None,
        offered=None if source is None else options.read_text(source, "plan-phase"),
        gaps=gaps,
        ask=ask,
        research=not no_research,
        approve=approve,
    )
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        result = plan_phase.plan_phase(services, request, options.progress_writer(as_json=as_json))
    return output.finish("plan-phase", result, as_json=as_json)
