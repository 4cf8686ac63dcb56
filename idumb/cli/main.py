"""The group of all commands, and the boundary at which every error becomes a message and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from idumb import __version__
from idumb.cli import output
from idumb.domain import errors

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Set idumb up in this repository."),
    "discuss": ("discuss", "Answer what must be known before a phase is planned."),
    "research": ("research", "Have a phase researched."),
    "plan-phase": ("plan_phase", "Write the plan of a phase; it is written only when it is legal."),
    "check-plan": ("check_plan", "Check the plans of a phase; print every finding."),
    "plan-diff": ("plan_diff", "Show what changed in the plans since they were approved or locked."),
    "approve": ("approve", "Approve a phase, so that it may run in strict mode; or take that back."),
    "amend": ("amend", "Change a locked plan; its run goes on under the next version."),
    "graph": ("graph", "Show the order and the waves of a phase's tasks."),
    "execute-phase": ("execute_phase", "Run a phase, task by task, and verify it."),
    "execute": ("execute", "Run a step plan, step by step."),
    "quick": ("quick", "Run one task that you name here, with every guarantee of a plan."),
    "start": ("start", "Begin a task that you build yourself; get all that its builder is owed."),
    "submit": ("submit", "Have the work on a begun task judged."),
    "give-up": ("give_up", "End a begun task without its work."),
    "mcp": ("mcp", "Serve idumb to an agent in an editor, by the Model Context Protocol."),
    "resume": ("resume", "Go on with a phase after an interruption, a failure or an answer."),
    "pause": ("pause", "Let a run wait after the task that it is at, until it is resumed."),
    "cancel": ("cancel", "Stop what runs in this work tree, from another terminal."),
    "verify-work": ("verify_work", "Judge a phase from its success criteria back to evidence."),
    "status": ("status", "Show where every phase is."),
    "next": ("next_command", "Show what comes next, and why not the others."),
    "roadmap": ("roadmap", "List the phases and where they are."),
    "show": ("show", "Show a task with its attempts, evidence and checkpoint."),
    "envelope": ("envelope", "Show what an attempt ran under, or compare two."),
    "metrics": ("metrics", "Show what a phase's agents used: time, tokens and money."),
    "diff": ("diff", "Show what a task changed."),
    "accept": ("accept", "Accept a task as it is, with a reason."),
    "skip": ("skip", "Leave a task out, with a reason."),
    "decisions": ("decisions", "List the questions that wait for an answer."),
    "decide": ("decide", "Answer a question."),
    "debug": ("debug", "Gather what is known of failed tasks, and what can be done."),
    "handoff": ("handoff", "List, show, change and count the work that tasks passed on."),
    "dlq": ("dlq", "List failed tasks and runs; try one again, or remove it."),
    "rollback": ("rollback", "Go back to the checkpoint after a task, or to the start."),
    "undo": ("undo", "Undo the newest rollback, undo or run."),
    "log": ("log", "Show the events of a run."),
    "fake-model": ("fake_model", "Serve a scripted model on this machine, to rehearse with a real agent."),
    "install": ("install", "Put idumb's slash commands where an agent host looks for them."),
    "doctor": ("doctor", "Examine everything a run stands on; mend what is safe."),
    "backup": ("backup", "Write a backup of the event log, or check one."),
    "archive": ("archive", "Move older events to the archive; nothing is discarded."),
    "deinit": ("deinit", "Take idumb out of this repository."),
    "audit": ("audit", "Check that the event log is as it was written."),
    "help": ("help", "Show a page of the documentation."),
}


class LazyGroup(click.Group):
    """Knows names and one-line helps of all commands; imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"idumb.cli.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from idumb.domain.finding import nearest

            near = nearest(args[0], COMMANDS)
            hint = f" Did you mean {near}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="idumb", message="%(prog)s %(version)s")
def group() -> None:
    """Plans are contracts, written in Markdown and kept in git. Code executes them.

    Every command takes --json and then prints exactly one object.
    """


def run(argv: Sequence[str]) -> int:
    """Run one command line; the exit code. Nothing but an exit code leaves this function."""
    name = next((a for a in argv if not a.startswith("-")), "idumb")
    output.redact_by()  # nothing is known yet of the repository
    try:
        code = group.main(args=list(argv) or ["--help"], prog_name="idumb", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit:  # click hides a closed pipe in wrapped streams and exits
        return output.unwritten(BrokenPipeError())
    except (Exception, KeyboardInterrupt) as problem:  # the boundary: a defect of ours never shows as a traceback
        known = _known(problem)
        if known.code == "internal" and "--debug" in argv:
            raise
        try:
            failed = output.fail(name, known, as_json="--json" in argv)
            output.write(sys.stdout, "")
        except OSError as unwritable:
            unwritten = output.unwritten(unwritable)
            # A terminal that was closed sent the signal and takes no answer; what happened is the signal.
            return known.exit_code if isinstance(known, errors.Interrupted) else unwritten
        return failed
    return code if isinstance(code, int) else 0


def _known(problem: BaseException) -> errors.IdumbError:
    """Whatever went wrong, as an error with a code, a message and a next step."""
    if isinstance(problem, errors.IdumbError):
        return problem
    if isinstance(problem, click.UsageError):
        where = problem.ctx.command_path if problem.ctx else "idumb"
        return errors.UsageError("usage", problem.format_message(), hint=f"{where} --help")
    if isinstance(problem, click.ClickException):
        return errors.UsageError("usage", problem.format_message())
    if isinstance(problem, (click.Abort, KeyboardInterrupt)):
        return errors.Interrupted(2)
    if isinstance(problem, OSError):
        from idumb.cli import system_errors

        return system_errors.explain(problem)
    return output.of_defect(problem)
