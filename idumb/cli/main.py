"""The `idumb` command: its help, and the boundary that turns every error into a message and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence

import click

from idumb import __version__
from idumb.cli import options, output
from idumb.domain import errors

_GROUPS = {
    "Plan": ("plan", "plan-phase", "import", "check-plan", "amend", "graph"),
    "Run": ("execute-phase", "resume", "execute", "quick", "verify-work", "stop"),
    "Workflows": ("workflow",),
    "Look": ("status", "show", "next", "roadmap", "report", "log", "watch", "metrics", "audit", "debug", "prove"),
    "Decide": ("decide", "decisions", "approve", "accept", "skip", "drop", "handoff", "dlq"),
    "Undo": ("rollback", "undo"),
    "Set up": ("init", "install", "doctor", "config", "backup", "archive", "deinit", "schema", "help"),
    "For agents": ("mcp", "start", "take", "submit", "give-up", "fake-model"),
}
"""Every command, by group. Each group has a module, and a command imports only that; the exceptions are below."""

_EVERYDAY = ("init", "plan-phase", "check-plan", "execute-phase", "status", "show", "decide", "resume")
_MODULES = {name: title.lower().replace(" ", "_") for title, names in _GROUPS.items() for name in names}
_MODULES |= dict.fromkeys(("watch", "metrics", "debug"), "monitoring") | dict.fromkeys(("rollback", "undo"), "run")
GROUPS = {"Everyday": _EVERYDAY} | {
    title: tuple(name for name in names if name not in _EVERYDAY) for title, names in _GROUPS.items()
}
COMMANDS = [name for names in GROUPS.values() for name in names]
_ELSEWHERE = {
    "run": "idumb execute-phase {}", "plan-check": "idumb check-plan {}", "verify": "idumb verify-work {}",
    "cancel": "idumb stop", "pause": "idumb stop --after-task", "retry": "idumb resume {} --retry-failed",
    "diff": "idumb show {} --diff", "events": "idumb log {}", "questions": "idumb decisions",
}  # fmt: skip
"""Words of other programs, with what to type here."""


_AGAIN = "then run the command again; idumb status shows where you are"
_LOOK = "Check the owner and mode of this path and its folder"
_SYSTEM_ERRORS = {
    errno.ENOSPC: ("system.full", "No space left on the disk", f"Free disk space, {_AGAIN}"),
    errno.EDQUOT: ("system.full", "Disk quota exceeded", f"Free disk space, {_AGAIN}"),
    errno.EROFS: ("system.read-only", "Read-only file system", f"Make it writable, {_AGAIN}"),
    errno.EACCES: ("system.denied", "Permission denied", _LOOK),
    errno.EPERM: ("system.denied", "Operation not permitted", _LOOK),
    errno.EIO: ("system.disk", "Disk error", f"Check the disk, {_AGAIN}"),
    errno.EMFILE: ("system.files", "Too many open files", f"Raise the limit (ulimit -n), {_AGAIN}"),
    errno.ENFILE: ("system.files", "Too many open files on this system", f"Close other programs, {_AGAIN}"),
    errno.ENOMEM: ("system.memory", "Out of memory", f"Close other programs, {_AGAIN}"),
    errno.EAGAIN: ("system.memory", "Cannot start another process", f"Close other programs, {_AGAIN}"),
}
"""Code, message and hint by errno. libgit2 gives no errno, only the text."""
_PATH_CODES = ("system.read-only", "system.denied", "system.refused")
_OTHER = ("system.refused", "The operating system refused", f"Fix this, {_AGAIN}")


class LazyGroup(options.Group):
    """Imports a command's module only to run it or to show help."""

    def sections(self) -> Mapping[str, Sequence[str]]:
        return GROUPS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"idumb.cli.{_MODULES[cmd_name]}_commands")
        command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command


@click.group(
    cls=LazyGroup,
    elsewhere=_ELSEWHERE,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="idumb COMMAND --help shows its options; idumb help lists the documentation.",
)
@click.version_option(__version__, "-V", "--version", prog_name="idumb", message="%(prog)s %(version)s")
@click.option("--set", "chosen", multiple=True, metavar="NAME=VALUE", help="Override a setting. Repeatable.")
def group(chosen: tuple[str, ...]) -> None:
    """Plans are contracts, written in Markdown, kept in git, executed by code.

    With --json, every command prints exactly one JSON object.
    """
    for setting in chosen:
        name, sign, value = setting.partition("=")
        if not sign:
            raise click.UsageError(f"Write --set NAME=VALUE, such as run.max_attempts=5, and not {setting!r}.")
        from idumb.markdown import single_settings

        single_settings.choose(name, value)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Raises nothing."""
    output.redact_by()  # no secrets are known before the repository is
    try:
        code = group.main(args=list(argv) or ["--help"], prog_name="idumb", standalone_mode=False, obj=tuple(argv))
    except SystemExit as ended:  # click hides a closed pipe in wrapped streams and exits; so it does after a completion
        return output.report_unwritable(BrokenPipeError()) if ended.code else 0
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the boundary: users never see a traceback
        return _report(problem, argv)
    return code if isinstance(code, int) else 0


def _report(problem: BaseException, argv: Sequence[str]) -> int:
    """Print why the command failed and return its exit code."""
    if isinstance(problem, OSError) and problem.filename is None:
        try:
            output.write(sys.stdout, "")
        except OSError as unwritable:
            if unwritable.errno == problem.errno:  # no disk is full: help or a line of a log could not be written
                return output.report_unwritable(unwritable)
    error = _explain(problem, argv)
    try:
        code = output.fail(output.command_in(argv), error, as_json="--json" in argv)
        output.write(sys.stdout, "")
    except OSError as unwritable:
        unwritten = output.report_unwritable(unwritable)
        # A terminal that was closed sent the signal and cannot be written to; the signal decides the exit code.
        return error.exit_code if isinstance(error, errors.Interrupted) else unwritten
    return code


def _explain(problem: BaseException, argv: Sequence[str]) -> errors.IdumbError:
    """Return any exception as an error with a code, a message and a next step."""
    if isinstance(problem, errors.IdumbError):
        return problem
    if isinstance(problem, click.UsageError):
        return _usage(problem, argv)
    if isinstance(problem, (click.Abort, KeyboardInterrupt)):
        return errors.Interrupted(2)
    if isinstance(problem, OSError):
        return of_system(problem)
    return output.defect(problem)


def _usage(problem: click.UsageError, argv: Sequence[str]) -> errors.UsageError:
    """Return a usage error, which names the nearest word that exists if a word is mistyped."""
    if isinstance(problem, click.NoSuchOption):
        problem = options.unknown_option(problem)
    nearest, message = getattr(problem, "nearest", None), problem.format_message()
    typed = output.command_in(argv)
    path = problem.ctx.command_path if problem.ctx else f"idumb {typed}" if typed in COMMANDS else "idumb"
    details = {"nearest": nearest, "evidence": [message]} if nearest else {}
    return errors.UsageError("usage", message, hint=f"{path} --help", details=details)


def of_system(problem: OSError) -> errors.IdumbError:
    """Return the error for one of the system. Only completed work is recorded, so the same command can continue."""
    from idumb.domain import paths
    from idumb.system import machine, user_folders

    try:
        here, state = os.getcwd(), user_folders.path()
    except FileNotFoundError:
        words = "The folder that you are in no longer exists."
        return errors.Refusal("system.folder-gone", words, hint="cd to the repository, then run the command again")
    number = problem.errno or _number(str(problem))
    code, summary, hint = _SYSTEM_ERRORS.get(number, _OTHER)
    path = _path(problem)
    is_part = paths.is_below(path, state) or (paths.is_below(state, path) and not paths.is_below(here, path))
    if code in _PATH_CODES and is_part:
        summary = f"Cannot use the state directory {state}"
        hint = f"Make it writable, or set XDG_STATE_HOME to another folder, {_AGAIN}"
    reason = problem.strerror or str(problem)
    message = f"{summary}: {reason}" if path in reason else f"{summary}: {path}: {reason}"
    if code == "system.full":
        message += machine.described(path)
    return errors.Refusal(code, message, hint=hint, details={"path": path})


def _number(message: str) -> int:
    return next((number for number in _SYSTEM_ERRORS if message.rstrip().endswith(os.strerror(number))), 0)


def _path(problem: OSError) -> str:
    """Return the absolute path that failed: from the error, from libgit2's text, or the current folder."""
    if isinstance(problem.filename, (str, bytes)):
        return os.path.abspath(os.fsdecode(problem.filename))
    quoted = re.search(r"'(/[^']+)'", str(problem))
    return quoted[1] if quoted else os.getcwd()
