"""`idumb discuss N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("discuss")
@click.argument("phase")
@click.option(
    "--answer",
    "answers",
    multiple=True,
    callback=options.people_only_option,
    metavar="ID=TEXT",
    help="Answer a question. Repeatable.",
)
@click.option("--more", is_flag=True, help="Ask for more questions, even if some are already there.")
@click.option("--usual", is_flag=True, help="Use the standard questions instead of asking an agent for better ones.")
@options.approve("Consent to this agent.")
@options.as_json
@options.debug
def command(
    phase: str, answers: tuple[str, ...], approve: tuple[str, ...], *, more: bool, usual: bool, as_json: bool
) -> int:
    """Answer the questions that planning a phase depends on.

    The answers are saved in the context file of the phase. If an agent is bound to the researcher role, it asks the
    questions. At a terminal you answer them one by one; otherwise they wait in the file, where you can answer them too.
    """
    from idumb.app.planning import phase_discussion
    from idumb.views.terminal import ask

    if answers and (more or usual):
        raise click.UsageError("--answer answers questions; --more and --usual ask them. Choose one.")
    request = phase_discussion.Request(phase, _pairs(answers), more=more, usual=usual, approve=approve)
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        asker = services.asker
        read = (lambda one: asker.words(one.text, one.why)) if isinstance(asker, ask.Terminal) else None
        result = phase_discussion.discuss(services, request, read)
    return output.finish("discuss", result, as_json=as_json)


def _pairs(answers: tuple[str, ...]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for pair in answers:
        question, equals, text = pair.partition("=")
        if not equals or question in texts:
            raise click.UsageError("Write --answer ID=TEXT, each id once.")
        texts[question] = text
    return texts
