"""`idumb help [TOPIC]`."""

from __future__ import annotations

import click

from idumb.cli import main, options, output
from idumb.domain.errors import UsageError
from idumb.domain.finding import nearest


@click.command("help")
@click.argument("topic", required=False)
@options.as_json
@options.debug
@click.pass_context
def command(ctx: click.Context, topic: str | None, as_json: bool) -> int:
    """Show a page of the documentation, or the options of a command; without TOPIC, list the pages."""
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
    shown = main.group.get_command(ctx, topic)
    if shown is not None:
        return shown.get_help(click.Context(shown, info_name=topic, parent=ctx.parent)) + "\n"
    near = nearest(topic, [*pages, *main.COMMANDS])
    raise UsageError(
        "usage",
        f"There is no help on {topic!r}." + (f" Did you mean {near}?" if near else ""),
        hint=f"idumb help {near}" if near else "idumb help lists the topics",
    )


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")
