"""`idumb plan-phase N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("plan-phase")
@click.argument("phase")
@click.option("--template", "from_template", is_flag=True, help="Ask nobody: write a plan to fill in.")
@click.option("--from", "source", metavar="FILE", help="Take this plan, if it is legal; - reads it.")
@click.option("--gaps", is_flag=True, help="One more plan, for what verify-work found open.")
@click.option("--ask", is_flag=True, help="Show what the planner would be told; run nothing.")
@click.option("--no-research", is_flag=True, help="Leave research as it is.")
@options.approve("Consent to exactly these agents.")
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

    The planner is given the roadmap, the project, what people said and the research, which is made first where it is
    missing or stale. What it writes is checked as check-plan does, and by the plan-checker where one is bound; findings
    go back to it, for three rounds at most. A plan is written only when it is legal, and never over another.

    With --ask nothing is run or written: give the prompt to whom you like, and what they answer to --from.
    """
    from idumb.app.planning import plan_phase
    from idumb.composition import maintenance

    if sum((from_template, ask, source is not None)) > 1:
        raise click.UsageError("--template, --from and --ask exclude each other.")
    if gaps and from_template:
        raise click.UsageError("--gaps asks the planner, or takes a plan with --from; a template knows no gaps.")
    request = plan_phase.Request(
        phase,
        template=maintenance.plan_template() if from_template else None,
        offered=None if source is None else options.text_of(source, "plan-phase"),
        gaps=gaps,
        ask=ask,
        research=not no_research,
        approve=approve,
    )
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        result = plan_phase.plan_phase(services, request, options.teller(as_json=as_json))
    return output.finish("plan-phase", result, as_json=as_json)
