"""`idumb fake-model`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("fake-model")
@click.option("--script", metavar="FILE", help="What the model answers, in Markdown (idumb help fake-model).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; without it a free one.")
@click.option("--log", metavar="FILE", help="Add a line of JSON for each request to this file; never a key.")
@options.as_json
@options.debug
def command(script: str | None, port: int, log: str | None, as_json: bool) -> int:
    """Serve a scripted model on this machine, to rehearse with a real agent and no money.

    It speaks Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini, streaming or not, on 127.0.0.1
    alone. It prints its address and serves until it is told to end (Ctrl-C, SIGTERM).
    """
    from idumb.composition import maintenance

    def ready(address: str) -> None:
        output.show("fake-model", {"address": address, "script": script, "log": log}, as_json=as_json)

    maintenance.fake_model(script, port, log, ready)
    return 0
