"""`idumb decide ID CHOICE`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("decide")
@click.argument("decision", required=False)
@click.argument("choice", required=False)
@click.option("--guidance", default="", help="Words that go with the answer.")
@click.option("--remember", is_flag=True, help="Answer the same question so from now on; needs a confirmation.")
@click.option("--forget", metavar="ID", help="Take back a remembered answer (see decisions --remembered).")
@options.yes
@options.as_json
@options.debug
@options.persons_word
def command(
    decision: str | None,
    choice: str | None,
    guidance: str,
    remember: bool,
    forget: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Answer a question; the run takes the answer up with resume.

    About a task that failed with all its attempts, accept, skip and roll-back are done at once. The words of --guidance
    are in the prompts of the task's next attempts.

    The answer is appended to the plan, under `## Decisions`. What happens after a failure, and a choice that the plan
    offers, can be remembered for this repository; consent, judgements of work and irreversible tasks never.
    """
    from idumb.app.running import decisions

    if forget is None and (decision is None or choice is None):
        raise click.UsageError("It takes the id of a question and a choice; idumb decisions shows both.")
    if forget is not None and (decision is not None or remember):
        raise click.UsageError("--forget takes back a remembered answer and gives none.")
    with options.services(as_json=as_json, writes=True) as services:
        if forget is not None:
            result = decisions.forget(services, forget)
        else:
            request = decisions.Request(decision or "", choice or "", options.who(), guidance, remember, yes)
            result = decisions.decide(services, request)
    return output.finish("decide", result, as_json=as_json)
