"""`idumb quick "Fix the typo in the README"`."""

from __future__ import annotations

import os
import shlex

import click

from idumb.cli import options, output


@click.command("quick")
@click.argument("task")
@click.option("--files", multiple=True, metavar="PATH", help="A file, folder or pattern that may change. Repeatable.")
@click.option("--check", metavar="COMMAND", help="The command that proves it: exit code 0.")
@click.option("--builder", metavar="BINDING", help="Who builds it; otherwise the configuration's builder.")
@options.approve("Consent to exactly this contract.")
@click.option("--events", is_flag=True, help="Print each event as a line of JSON while the run goes on.")
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
    """Run one task that you name here: saved before, held to its files, proven, committed, taken back on demand.

    The plan is shown first; once you agree it is written under .planning/quick/ and run as phase Q1, Q2 and so on,
    which every other command knows. Without a terminal the answer names the contract hash that --approve takes.

    A file that is there must be modified by the task, one that is not must be created by it; in a folder (`docs/`) or
    behind a wildcard anything may change. Without --files any file may, and you judge the list of what did. Without
    --check nothing proves more than that.
    """
    from idumb.app.running import final_questions, quick
    from idumb.app.running.execute_phase import Request
    from idumb.domain.plans.quick_plan import Wanted, claims

    if events and as_json:
        raise click.UsageError("--events and --json both want standard output; choose one")
    strange = next((path for path in files if _holds_control(path)), None)
    if strange is not None:
        raise click.UsageError(f"--files {strange!r} holds a control character, which no path of a plan can.")
    if not task.strip():
        raise click.UsageError("Say what is to be done.")
    typed = ["idumb", "quick", task, *(word for path in files for word in ("--files", path))]
    typed += [*(("--check", check) if check else ()), *(("--builder", builder) if builder else ())]
    with options.services(as_json=as_json, events=events, progress=True) as services:

        def there(path: str) -> bool:
            return services.reports.exists(path) or os.path.islink(os.path.join(services.root, path))

        named = [_from_root(path, services.root) for path in files]
        wanted = Wanted(task, claims(named, there) if files else None, check, builder)
        request = Request("", approve=approve, command="quick")
        result = quick.run(services, wanted, request, again=shlex.join(typed))
        result = final_questions.asked(services, request, result)
    return output.finish("quick", result, as_json=as_json, quiet=events)


def _holds_control(path: str) -> bool:
    """Whether a plan, which is lines of text, would name another file."""
    import unicodedata

    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in path)


def _from_root(path: str, root: str) -> str:
    """The path from the repository's root, with the slash at its end if it has one."""
    if os.path.isabs(path):
        return path  # intake says what is wrong with it
    found = os.path.relpath(os.path.join(os.path.realpath(os.getcwd()), path), os.path.realpath(root))
    return found.replace(os.sep, "/") + "/" * path.endswith("/")
