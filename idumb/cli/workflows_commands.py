"""The commands of `workflow`: list, show and check definitions, run them, and report their runs."""

from __future__ import annotations

from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options
from idumb.system import user_folders

_ELSEWHERE = {
    "resume": "idumb resume {}", "cancel": "idumb stop", "pause": "idumb stop --after-task",
    "rollback": "idumb rollback {}", "undo": "idumb undo",
    "events": "idumb log {}", "log": "idumb log {}", "trace": "idumb log {}",
    "dlq": "idumb dlq list", "metrics": "idumb show {} --usage", "dashboard": "idumb workflow status",
    "debug": "idumb workflow status {}", "inspect": "idumb workflow status {}", "replay": "idumb workflow status {}",
    "graph": "idumb graph {}", "validate": "idumb workflow check {}",
}  # fmt: skip
"""What other workflow engines do with a run, and the command that does it with every phase."""

workflow_command = options.Group(
    "workflow",
    help="""List, show, check and run workflows.

    A workflow is a Markdown file in .idumb/workflows, in workflows of your configuration folder, or in idumb itself, in
    this order. A run of it is a phase, such as W1: other commands, such as resume, rollback and log, accept it.
    """,
    elsewhere=_ELSEWHERE,
)


@options.command("list", "app.workflows.listing", group=workflow_command, opens=options.ANYWHERE)
def list_workflows_command() -> None:
    """List the workflows that can run here."""


@options.command("show", "app.workflows.show", group=workflow_command, opens=options.ANYWHERE)
@click.argument("name")
def show_command() -> None:
    """Show a workflow with its inputs and steps."""


@options.command("check", "app.workflows.check", group=workflow_command, opens=options.ANYWHERE)
@click.argument("name")
def check_command() -> None:
    """Check a workflow and print every finding."""


@options.command("status", "app.workflows.status", group=workflow_command, opens=options.READS)
@click.argument("name", required=False)
def status_command() -> None:
    """Show the runs of a workflow, the run of a phase, or all runs."""


@options.command("run", group=workflow_command, view="run.ended")
@click.argument("name", required=False)
@options.many("--input", "NAME=VALUE", "An input.", "inputs")
@click.option("--from", "source", default="", metavar="HANDOFF", help="Take up this handoff; it gives inputs.")
@options.dry_run
@options.running
def run_command(name: str | None, inputs: tuple[str, ...], source: str, **flags: Any) -> Result:
    """Run a workflow.

    Copies it with its inputs to .planning/workflows as phase W1, W2 and so on, asks for consent, and runs it. Without a
    terminal, the answer names the hash for --approve, and nothing is written.
    """
    if not (name or source):
        raise click.UsageError("Name a workflow, or --from HANDOFF.")
    from idumb.app import workflows
    from idumb.app.core.run_context import RunRequest
    from idumb.app.running import resume

    given = arguments.pairs("--input", inputs)
    with options.services(progress=True) as services:
        request = RunRequest("", command="workflow", **flags)
        result = workflows.run(services, name, given, request, source=source, who=user_folders.user_name())
        return resume.ask_and_resume(services, request, result)
