"""`idumb quick "Fix the typo in the README"`."""

from __future__ import annotations

import os
import shlex

import click

from idumb.cli import options, output


@click.command("quick")
@click.argument("task")
@click.option(
    "--files", multiple=True, metavar="PATH", help="A file, folder or pattern that the task may change. Repeatable."
)
@click.option("--check", metavar="COMMAND", help="The command that proves the work by exiting with 0.")
@click.option("--builder", metavar="BINDING", help="Who builds the task; by default the configured builder.")
@options.approve("Consent to this contract.")
@click.option("--events", is_flag=True, help="Print each event as a JSON line during the run.")
@options.as_json
@options.debug
def command(
    task: str,
    files: tuple[str, ...],
    check: str | None,
    builder: str | None,
    approve: tuple[str, ...],
    events: bool,
    as_json: bool,
) -> int:
    """Run one task that you describe here.

    The task has every guarantee of a plan: a snapshot first, only declared files, a proof, a commit, and undo. You see
    the plan and agree to it; then it is written to .planning/quick/ and run as phase Q1, Q2 and so on. Other commands
    accept that phase. Without a terminal, the answer names the contract hash for --approve.

    The task must modify each file in --files that exists, and create each one that does not. In a folder (`docs/`) or
    behind a wildcard, anything may change. Without --files any file may change, and you judge the list of changes.
    Without --check, idumb checks only which files changed.
    """
    from idumb.app.running import final_questions, quick
    from idumb.app.running.run_request import Request
    from idumb.domain.plans.quick_plan import QuickRequest, claims

    if events and as_json:
        raise click.UsageError("--events and --json both write to standard output; choose one.")
    invalid = next((path for path in files if _has_control_character(path)), None)
    if invalid is not None:
        raise click.UsageError(f"--files {invalid!r} has a control character; paths in plans cannot.")
    if not task.strip():
        raise click.UsageError("Describe the task.")
    command_line = ["idumb", "quick", task, *(word for path in files for word in ("--files", path))]
    command_line += [*(("--check", check) if check else ()), *(("--builder", builder) if builder else ())]
    with options.services(as_json=as_json, events=events, progress=True) as services:

        def exists(path: str) -> bool:
            return services.reports.exists(path) or os.path.islink(os.path.join(services.root, path))

        paths = [_from_root(path, services.root) for path in files]
        wanted = QuickRequest(task, claims(paths, exists) if files else None, check, builder)
        request = Request("", approve=approve, command="quick")
        result = quick.run(services, wanted, request, again=shlex.join(command_line))
        result = final_questions.ask_and_resume(services, request, result)
    return output.finish("quick", result, as_json=as_json, quiet=events)


def _has_control_character(path: str) -> bool:
    """Return whether a plan, which consists of lines of text, could not name the path."""
    import unicodedata

    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in path)


def _from_root(path: str, root: str) -> str:
    """Return the path from the repository's root; a slash at its end stays."""
    if os.path.isabs(path):
        return path  # intake reports what is wrong with it
    relative = os.path.relpath(os.path.join(os.path.realpath(os.getcwd()), path), os.path.realpath(root))
    return relative.replace(os.sep, "/") + "/" * path.endswith("/")
