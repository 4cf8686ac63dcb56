"""`idumb help [TOPIC]`."""

from __future__ import annotations

import click

from idumb.cli import main, mistyped, options, output
from idumb.domain.errors import UsageError


@click.command("help")
@click.argument("topic", required=False)
@options.as_json
@options.debug
@click.pass_context
def command(ctx: click.Context, topic: str | None, as_json: bool) -> int:
    """Show a page of the documentation.

    TOPIC is a page or a command. Without TOPIC, lists the pages.
    """
    from idumb.system.files import shipped_files

    pages = shipped_files.pages()
    if topic is None:
        titles = [{"topic": name, "title": _title(text)} for name, text in pages.items()]
        output.show("help", {"topics": titles}, as_json=as_json)
        return 0
    output.show("help", {"topic": topic, "text": _text(ctx, pages, topic)}, as_json=as_json)
    return 0


def _text(ctx: click.Context, pages: dict[str, str], topic: str) -> str:
    if topic in pages:
        return pages[topic]
    named = main.group.get_command(ctx, topic)
    if named is not None:
        return named.get_help(click.Context(named, info_name=topic, parent=ctx.parent)) + "\n"
    nearest = mistyped.nearest_of(topic, [*pages, *main.COMMANDS])
    raise UsageError(
        "usage",
        mistyped.suggest(f"No help on {topic!r}.", nearest),
        hint=f"idumb help {nearest}" if nearest else "idumb help lists the topics",
    )


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")
