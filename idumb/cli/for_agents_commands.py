"""The commands of the group For agents: start, take, submit and give up tasks; serve tools and a scripted model."""

from __future__ import annotations

from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import options, output
from idumb.system import user_folders


@options.command("mcp", view="run.tools")
@click.option("--list", "only_list", is_flag=True, help="List the tools and exit.")
def mcp_command(only_list: bool) -> Result | None:
    """Serve idumb over the Model Context Protocol.

    Serves an agent in an editor over standard input and output (idumb help editor). Each tool answers with the JSON
    object of its command. Needs the extra: pip install 'idumb[mcp]'.
    """
    from idumb.cli import mcp_tools

    if only_list or options.flag("as_json"):
        return Result({"tools": mcp_tools.listed()})
    mcp_tools.serve()
    return None


_of_builders = options.together(
    click.option("--by", metavar="NAME", help="Who works on the task; by default your user name."),
    options.approve("Consent to all that would run; check-plan shows the hash."),
    options.approval,
    options.mode,
    options.accept_git,
    options.accept_changed,
)


@options.command("start", view="run.start", opens=options.RUNS)
@options.task
@click.option("--retry", is_flag=True, help="Retry a task that has no attempt left.")
@_of_builders
def start_command(services: options.Container, task: str, by: str | None, retry: bool, **flags: Any) -> Result:
    """Start a task that you build yourself.

    Saves the whole tree, checks the preconditions, opens an attempt and prints the builder's brief. The attempt stays
    open until `idumb submit` or `idumb give-up`. The builder of the task must be `editor`.
    """
    from idumb.app import editor
    from idumb.app.core.run_context import RunRequest

    return editor.start(services, task, by or user_folders.user_name(), RunRequest("", **flags), retry=retry)


@options.command("take", view="run.start", opens=options.RUNS)
@options.task
@_of_builders
def take_command(services: options.Container, task: str, by: str | None, **flags: Any) -> Result:
    """Take over a task that an agent did not finish.

    Puts what its last attempt left into your working tree, uncommitted, and opens an attempt for you. A file that you
    changed stays as you have it. Correct the work, then `idumb submit` judges it; `idumb give-up` takes it out again.
    """
    from idumb.app import editor
    from idumb.app.core.run_context import RunRequest

    return editor.take(services, task, by or user_folders.user_name(), RunRequest("", **flags))


@options.command("submit", view="run.submit", opens=options.RUNS)
@options.task
@click.option("--say", default="", metavar="TEXT", help="What you say about your work, which is recorded.")
@options.negative("--no-verify", "verify", "Do not verify the phase after its last task.")
@options.approve("Consent to all that would run; check-plan shows the hash.")
@options.accept_git
@options.accept_changed
def submit_command(services: options.Container, task: str, say: str, **flags: Any) -> Result:
    """Submit your work on a started task.

    idumb compares the changed files with the declared ones, then runs every gate and check. Exits with 0 if the task is
    accepted, with 1 and feedback if it is not, and with 5 if a person must decide.
    """
    from idumb.app import editor
    from idumb.app.core.run_context import RunRequest

    return editor.submit(services, task, RunRequest("", **flags), say)


@options.command("give-up", "app.editor.give_up", view="run.give_up", opens=options.RUNS)
@options.task
@click.option("--why", required=True, metavar="REASON", help="The reason, which is recorded.")
@options.accept_git
def give_up_command() -> None:
    """End a started task without its work.

    Saves the working tree in a snapshot, then restores the task's declared files. Nothing else changes, and the attempt
    does not count.
    """


@options.command("fake-model")
@click.option("--script", metavar="FILE", help="What the model answers, in Markdown (idumb help fake-model).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; a free one by default.")
@click.option("--log", metavar="FILE", help="Append a JSON line for each request to this file, without keys.")
def fake_model_command(script: str | None, port: int, log: str | None) -> None:
    """Serve a scripted model, to rehearse with a real agent.

    Costs nothing and needs no key. Speaks Anthropic Messages and OpenAI Responses,
    streaming or not, and listens only on 127.0.0.1. Prints its address and serves until Ctrl-C or SIGTERM.
    """
    from idumb.domain.model_script import Script
    from idumb.fake_model import server
    from idumb.markdown import model_script

    def ready(address: str) -> None:
        data = {"address": address, "script": script, "log": log}
        output.finish("fake-model", Result(data), "run.serving", as_json=options.flag("as_json"))

    server.serve(Script() if script is None else model_script.load(script), port, log, ready)
