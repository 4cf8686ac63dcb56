"""The command `workflow`: list, show and check definitions, run them, and report their runs."""

from __future__ import annotations

import shlex
from typing import Any

import click

from idumb.app.core.result import Result
from idumb.cli import mistyped, options
from idumb.domain.errors import UsageError
from idumb.system.files import user_folders

_NEEDS_NAME = frozenset({"show", "check"})
_ELSEWHERE = {
    "resume": "idumb resume {}", "cancel": "idumb stop", "pause": "idumb stop --after-task",
    "rollback": "idumb rollback {}", "undo": "idumb undo",
    "events": "idumb log {}", "log": "idumb log {}", "trace": "idumb log {}",
    "dlq": "idumb dlq list", "metrics": "idumb show {} --usage", "dashboard": "idumb workflow status",
    "debug": "idumb workflow status {}", "inspect": "idumb workflow status {}", "replay": "idumb workflow status {}",
    "graph": "idumb graph {}", "validate": "idumb workflow check {}",
}  # fmt: skip
"""What other workflow engines do with a run, and the command that does it with every phase."""
_OF_RUN = ("approval", "mode", "max_attempts", "on_deviation")


class _Action(mistyped.Action):
    """The word that follows `workflow`; words of other commands are left for a better error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in _ELSEWHERE else super().convert(value, param, ctx)


@options.command("workflow")
@click.argument("action", type=_Action(["list", "show", "check", "run", "status"]))
@click.argument("name", required=False)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="run: an input. Repeatable.")
@click.option("--from", "source", default="", metavar="HANDOFF", help="run: take up this handoff; it gives inputs.")
@options.running
def workflow_command(action: str, name: str | None, inputs: tuple[str, ...], source: str, **flags: Any) -> Result:
    """List, show, check and run workflows.

    A workflow is a Markdown file in .idumb/workflows, in workflows of your configuration folder, or in idumb itself, in
    this order. `run` copies it with its inputs to .planning/workflows as phase W1, W2 and so on, asks for consent, and
    runs it. Other commands, such as resume, rollback and log, accept that phase. Without a terminal, the answer names
    the hash for --approve. `status` takes a workflow, a phase, or nothing.
    """
    _require_usage(action, name, inputs, source, flags)
    if action == "run":
        return _run(name, inputs, source, flags)
    from idumb.app.workflows import definitions, runs

    with options.services() as services:
        if action == "list":
            return definitions.listing(services)
        if action == "status":
            return runs.status(services, name)
        return (definitions.show if action == "show" else definitions.check)(services, str(name))


def _require_usage(action: str, name: str | None, inputs: tuple[str, ...], source: str, flags: dict[str, Any]) -> None:
    if action in _ELSEWHERE:
        message = f"No such command 'workflow {action}'. A run of a workflow is a phase, such as W1."
        raise UsageError("usage", message, hint=_ELSEWHERE[action].format(shlex.quote(name or "W1")))
    if (action in _NEEDS_NAME and not name) or (action == "run" and not (name or source)):
        raise click.UsageError(f"Usage: idumb workflow {action} NAME")
    if action == "list" and name:
        raise click.UsageError("Usage: idumb workflow list")
    given = inputs or source or flags["approve"] or any(flags.get(flag) for flag in _OF_RUN)
    if action != "run" and given:
        raise click.UsageError(f"idumb workflow {action} takes no options of `run`.")


def _run(name: str | None, inputs: tuple[str, ...], source: str, flags: dict[str, Any]) -> Result:
    from idumb.app.running import resume
    from idumb.app.running.run_request import Request
    from idumb.app.workflows import start

    given: dict[str, str] = {}
    for text in inputs:
        key, equals, value = text.partition("=")
        if not equals or key in given:
            wrong = "is given twice" if key in given else "needs a value: --input NAME=VALUE"
            raise click.UsageError(f"--input {key} {wrong}.")
        given[key] = value
    words = ["idumb", "workflow", "run", *([name] if name else []), *(w for text in inputs for w in ("--input", text))]
    words += ["--from", source] if source else []
    request = Request("", command="workflow", again=shlex.join(words), **flags)
    with options.services(progress=True) as services:
        result = start.run(services, name, given, request, source=source, who=user_folders.user_name())
        return resume.ask_and_resume(services, request, result)
