"""`idumb fake-model`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("fake-model")
@click.option("--script", metavar="FILE", help="What the model answers, in Markdown (idumb help fake-model).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; a free one by default.")
@click.option("--log", metavar="FILE", help="Append a JSON line for each request to this file, without keys.")
@options.as_json
@options.debug
def command(script: str | None, port: int, log: str | None, as_json: bool) -> int:
    """Serve a scripted model, to rehearse with a real agent.

    Costs nothing and needs no key. Speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini,
    streaming or not, and listens only on 127.0.0.1. Prints its address and serves until Ctrl-C or SIGTERM.
    """
    from idumb.composition import maintenance

    def ready(address: str) -> None:
        output.show("fake-model", {"address": address, "script": script, "log": log}, as_json=as_json)

    maintenance.fake_model(script, port, log, ready)
    return 0
