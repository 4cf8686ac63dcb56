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
    callback=options.persons_option,
    metavar="ID=TEXT",
    help="Answer a question. Repeatable.",
)
@click.option("--more", is_flag=True, help="Ask for further questions, though there are some.")
@click.option("--usual", is_flag=True, help="The usual questions; no agent is asked for better ones.")
@options.approve("Consent to exactly this agent.")
@options.as_json
@options.debug
def command(
    phase: str, answers: tuple[str, ...], approve: tuple[str, ...], *, more: bool, usual: bool, as_json: bool
) -> int:
    """Answer what must be known before a phase is planned; the answers go into its context file.

    The researcher asks, where one is bound. At a terminal each question is put to you; elsewhere the questions wait in
    the file, where they can be answered too.
    """
    from idumb.app.planning import discussing
    from idumb.views import ask

    if answers and (more or usual):
        raise click.UsageError("--answer answers what was asked; --more and --usual ask. Choose one.")
    request = discussing.Request(phase, _pairs(answers), more=more, usual=usual, approve=approve)
    with options.services(as_json=as_json, writes=True, progress=True) as services:
        asker = services.asker
        read = (lambda one: asker.words(one.text, one.why)) if isinstance(asker, ask.Terminal) else None
        result = discussing.discuss(services, request, read)
    return output.finish("discuss", result, as_json=as_json)


def _pairs(answers: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in answers:
        identity, equals, answer = text.partition("=")
        if not equals or identity in found:
            raise click.UsageError("--answer takes the id of a question, =, and the answer; each id once.")
        found[identity] = answer
    return found
