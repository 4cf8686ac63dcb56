"""The `idumb` command: its help, and the boundary that turns every error into a message and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from idumb import __version__
from idumb.cli import mistyped, output
from idumb.domain import errors

_GROUPS = {
    "Plan": {
        "plan": "Write a plan, add a task to one, or prepare planning.",
        "plan-phase": "Write the plan of a phase.",
        "import": "Import the plan of another tool.",
        "check-plan": "Check the plans of a phase and print every finding.",
        "amend": "Change a locked plan; its run continues under it.",
        "graph": "Show the tasks of a phase in the order they run.",
    },
    "Run": {
        "execute-phase": "Run a phase, task by task, and verify it.",
        "resume": "Continue a phase after an interruption, failure or answer.",
        "execute": "Run a step plan, a YAML or JSON file of tool calls.",
        "quick": "Run one task that you describe here.",
        "verify-work": "Verify a phase against its success criteria.",
        "stop": "Stop the command that runs in this working tree.",
    },
    "Workflows": {"workflow": "List, show, check and run workflows."},
    "Look": {
        "status": "Show the state of every phase.",
        "show": "Show a task with its attempts, evidence and checkpoint.",
        "next": "Show what comes next, and what the other tasks wait for.",
        "roadmap": "List the phases with their state, or add one.",
        "report": "Print the reports of a phase, or write them as files.",
        "log": "Show the events of a run.",
        "watch": "Watch a run that another process works on.",
        "metrics": "Show figures over all runs: how tasks end, what agents use.",
        "audit": "Verify the event log, or what a run left behind.",
        "prove": "Rerun the evidence in a fresh clone of the commit.",
    },
    "Decide": {
        "decide": "Answer a question that waits for you.",
        "decisions": "List the questions that wait for you.",
        "approve": "Approve a phase for strict mode, or revoke its approvals.",
        "accept": "Accept a task as it is, with a reason.",
        "skip": "Skip a task, with a reason.",
        "drop": "Abandon a phase, a task or a quick task.",
        "handoff": "List, show and update handoffs.",
        "dlq": "List failed tasks and runs; retry or remove one.",
    },
    "Undo": {
        "rollback": "Return to the checkpoint after a task, or to the start.",
        "undo": "Undo the newest rollback, undo or run.",
    },
    "Set up": {
        "init": "Set up idumb in this repository.",
        "install": "Install idumb's slash commands for an agent host.",
        "doctor": "Check everything that runs depend on, and fix what is safe.",
        "config": "List, read and change settings.",
        "backup": "Write a backup of the event log, or check one.",
        "archive": "Move the events of finished runs to compressed files.",
        "deinit": "Remove idumb from this repository.",
        "schema": "Print a JSON Schema, or the snippets for VS Code.",
        "help": "Show a page of the documentation.",
    },
    "For agents": {
        "mcp": "Serve idumb over the Model Context Protocol.",
        "start": "Start a task that you build yourself.",
        "take": "Take over a task that an agent did not finish.",
        "submit": "Submit your work on a started task.",
        "give-up": "End a started task without its work.",
        "fake-model": "Serve a scripted model, to rehearse with a real agent.",
    },
}
"""Every command with the first line of its help, which is printed without importing the command's module."""

_EVERYDAY = ("init", "plan-phase", "check-plan", "execute-phase", "status", "show", "decide", "resume")
_MODULES = {name: title.lower().replace(" ", "_") for title, commands in _GROUPS.items() for name in commands}
_SUMMARIES = {name: summary for commands in _GROUPS.values() for name, summary in commands.items()}
GROUPS = {"Everyday": {name: _SUMMARIES[name] for name in _EVERYDAY}} | {
    title: {name: summary for name, summary in commands.items() if name not in _EVERYDAY}
    for title, commands in _GROUPS.items()
}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}
_ELSEWHERE = {
    "run": "idumb execute-phase {}", "plan-check": "idumb check-plan {}", "verify": "idumb verify-work {}",
    "cancel": "idumb stop", "pause": "idumb stop --after-task", "retry": "idumb resume {} --retry-failed",
    "diff": "idumb show {} --diff", "debug": "idumb show {} --debug", "events": "idumb log {}",
    "questions": "idumb decisions",
}  # fmt: skip
"""Words of other programs, with what to type here."""


class LazyGroup(mistyped.Group):
    """Imports a command's module only to run it or to show its help."""

    elsewhere = _ELSEWHERE

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"idumb.cli.{_MODULES[cmd_name]}_commands")
        command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="idumb COMMAND --help shows its options; idumb help lists the documentation.",
)
@click.version_option(__version__, "-V", "--version", prog_name="idumb", message="%(prog)s %(version)s")
def group() -> None:
    """Plans are contracts, written in Markdown, kept in git, executed by code.

    With --json, every command prints exactly one JSON object.
    """


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Raises nothing, except a defect under --traceback."""
    output.redact_by()  # no secrets are known before the repository is
    try:
        code = group.main(args=list(argv) or ["--help"], prog_name="idumb", standalone_mode=False, obj=tuple(argv))
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except SystemExit:  # click hides a closed pipe in wrapped streams and exits
        return output.unwritten(BrokenPipeError())
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the boundary: users never see a traceback
        return failed(problem, argv)
    return code if isinstance(code, int) else 0


def failed(problem: BaseException, argv: Sequence[str]) -> int:
    """Print why the command failed and return its exit code. Raises a defect under --traceback."""
    name = next((word for word in argv if not word.startswith("-")), "idumb")
    error = _explain(problem, argv)
    if error.code == "internal" and "--traceback" in argv:
        raise problem
    try:
        code = output.fail(name, error, as_json="--json" in argv)
        output.write(sys.stdout, "")
    except OSError as unwritable:
        unwritten = output.unwritten(unwritable)
        # A terminal that was closed sent the signal and cannot be written to; the signal decides the exit code.
        return error.exit_code if isinstance(error, errors.Interrupted) else unwritten
    return code


def _explain(problem: BaseException, argv: Sequence[str]) -> errors.IdumbError:
    """Return any exception as an error with a code, a message and a next step."""
    if isinstance(problem, errors.IdumbError):
        return problem
    if isinstance(problem, click.UsageError):
        return _usage(problem, argv)
    if isinstance(problem, click.ClickException):
        return errors.UsageError("usage", problem.format_message())
    if isinstance(problem, (click.Abort, KeyboardInterrupt)):
        return errors.Interrupted(2)
    if isinstance(problem, OSError):
        from idumb.cli import system_errors

        return system_errors.explain(problem)
    return output.defect(problem)


def _usage(problem: click.UsageError, argv: Sequence[str]) -> errors.UsageError:
    """Return a usage error, which names the nearest word that exists if a word is mistyped."""
    if isinstance(problem, click.NoSuchOption):
        problem = mistyped.option(problem)
    nearest, message = getattr(problem, "nearest", None), problem.format_message()
    path = problem.ctx.command_path if problem.ctx else " ".join(["idumb", *(w for w in argv[:1] if w in COMMANDS)])
    details = {"nearest": nearest, "evidence": [message]} if nearest else {}
    return errors.UsageError("usage", message, hint=f"{path} --help", details=details)
