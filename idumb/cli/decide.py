"""`idumb decide ID CHOICE`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("decide")
@click.argument("decision", required=False)
@click.argument("choice", required=False)
@click.option("--guidance", default="", help="Instructions that go with the answer.")
@click.option(
    "--remember", is_flag=True, help="Give the same answer to this question from now on; asks you to confirm."
)
@click.option("--forget", metavar="ID", help="Forget a remembered answer (see decisions --remembered).")
@options.yes
@options.as_json
@options.debug
@options.people_only
def command(
    decision: str | None,
    choice: str | None,
    guidance: str,
    remember: bool,
    forget: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Answer a question that waits for you.

    `idumb resume` continues the run with the answer. For a task that used up its attempts, accept, skip and roll-back
    take effect at once. --guidance is added to the prompts of the task's next attempts.

    The answer is appended to the plan, under `## Decisions`. Answers about failed tasks and about choices that the plan
    offers can be remembered for this repository. Consent, judgements of work and irreversible tasks are asked about
    each time.
    """
    from idumb.app.running import decisions

    if forget is None and (decision is None or choice is None):
        raise click.UsageError("Name a question and a choice; idumb decisions lists them.")
    if forget is not None and (decision is not None or remember):
        raise click.UsageError("--forget removes a remembered answer; it takes no question and no --remember.")
    with options.services(as_json=as_json, writes=True) as services:
        if forget is not None:
            result = decisions.forget(services, forget)
        else:
            request = decisions.Request(decision or "", choice or "", options.user_name(), guidance, remember, yes)
            result = decisions.decide(services, request)
    return output.finish("decide", result, as_json=as_json)
