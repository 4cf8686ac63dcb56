"""Options that several commands share, and how a command gets its services."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from idumb.cli import output

if TYPE_CHECKING:
    from idumb.app.ports.ui import Asker, Reporter
    from idumb.app.running.execute_phase import Request
    from idumb.composition.container import Container

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
debug = click.option("--debug", is_flag=True, hidden=True, expose_value=False)
yes = click.option("--yes", is_flag=True, help="Do it without asking.")


def require_a_person(word: str) -> None:
    """Refusal `agent.not-a-person` inside an agent or a check that idumb started for this repository."""
    from idumb.composition import status_view

    inside = status_view.surrounding_agent(os.getcwd())
    if inside is None:
        return
    from idumb.domain.errors import Refusal

    raise Refusal(
        "agent.not-a-person",
        f"{word} is a person's word, and this command runs inside {inside}. Nothing was done.",
        hint="A person says it, in a terminal of their own; an agent does its work, and idumb judges that",
        details={"word": word, "inside": inside},
    )


def persons_word(function: F) -> F:
    """For a command that is a person's word as a whole."""

    @functools.wraps(function)
    def said(*args: Any, **kwargs: Any) -> Any:
        require_a_person(f"idumb {click.get_current_context().info_name}")
        return function(*args, **kwargs)

    return cast("F", said)


def persons_option(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The callback of an option by which a person consents."""
    if value:
        require_a_person(parameter.opts[0])
    return value


def approve(words: str) -> Callable[[F], F]:
    """The option of every command that starts what somebody has to consent to; each hash names what its word is to."""
    return click.option(
        "--approve", metavar="HASH", multiple=True, callback=persons_option, help=f"{words} Repeatable."
    )


accept_git = click.option(
    "--accept-git",
    multiple=True,
    callback=persons_option,
    metavar="FILE",
    help="A file of git's own that changed while a task ran and may stay so. Repeatable.",
)


accept_changed = click.option(
    "--accept-changed",
    multiple=True,
    callback=persons_option,
    type=click.Choice(["adapter", "envelope"]),
    help="Go on though the agent's version, or anything that attempts run under, changed. Repeatable.",
)


dry_run = click.option(
    "--dry-run", is_flag=True, help="Run it in a throw-away copy and print the change; nothing is kept."
)


def running(function: F) -> F:
    """The options of every command that runs tasks."""
    for option in reversed(
        (
            approve("Consent to exactly this contract (see check-plan)."),
            click.option("--approval", metavar="FILE", help="A signed approval (see approve --sign --file)."),
            click.option("--mode", type=click.Choice(["guided", "strict"]), help="Override the plan's mode."),
            click.option("--max-attempts", type=click.IntRange(1, 100), help="Attempts a task, at most."),
            click.option(
                "--on-deviation",
                type=click.Choice(["accept", "halt"]),
                help="What to do with changes outside a task's declared files.",
            ),
            accept_git,
            click.option("--no-verify", is_flag=True, help="Do not go on to verify-work."),
            click.option("--workspace", type=click.Choice(["here", "clone"]), help="Where tasks run."),
            accept_changed,
            click.option(
                "--deterministic", is_flag=True, help="Refuse a task that leaves other files than it did before."
            ),
            click.option("--events", is_flag=True, help="Print each event as a line of JSON while the run goes on."),
            as_json,
            debug,
        )
    ):
        function = option(function)
    return function


def request(
    command: str,
    phase: str,
    flags: Mapping[str, Any],
    *,
    force: bool = False,
    branch: str | None = None,
    rehearsal: bool = False,
) -> Request:
    """What a command that runs tasks asks of its use case."""
    from idumb.app.running.execute_phase import Request

    if flags["events"] and flags["as_json"]:
        raise click.UsageError("--events and --json both want standard output; choose one")
    return Request(
        phase,
        approve=flags["approve"],
        approval=flags["approval"],
        mode=flags["mode"],
        max_attempts=flags["max_attempts"],
        on_deviation=flags["on_deviation"],
        verify=not flags["no_verify"],
        force=force,
        workspace=flags["workspace"],
        branch=branch,
        accept_git=tuple(flags["accept_git"]),
        deterministic=flags["deterministic"],
        accept_changed=tuple(flags["accept_changed"]),
        command=command,
        rehearsal=rehearsal,
    )


@contextlib.contextmanager
def services(
    *, as_json: bool = False, events: bool = False, progress: bool = False, writes: bool = False
) -> Iterator[Container]:
    """The services of the repository around the current folder; signals are taken over where something is written.

    Where tasks may run (`progress`) a signal stops them at the next safe point; what only `writes` is done by then.
    """
    from idumb.composition.container import Container

    _require_platform(writes=progress)
    container = Container(
        os.getcwd(),
        lambda: _asker(container, as_json=as_json or events),
        lambda: _reporter(as_json=as_json, events=events, progress=progress),
        lambda number: _farewell(number, as_json=as_json),
    )
    output.redact_by(lambda: container.secrets)
    if progress or writes:
        container.interrupts.install()
    try:
        yield container
    finally:
        _stop(container)
        container.close()


def from_root(file: str, root: str) -> str:
    """The path from the repository's root; what is there under the name as given is the plan's id."""
    folder, name = os.path.split(os.path.join(os.getcwd(), file))
    if not os.path.lexists(os.path.join(folder, name)) and "/" not in file:
        return file
    return os.path.relpath(os.path.join(os.path.realpath(folder), name), os.path.realpath(root)).replace(os.sep, "/")


def phase_named(given: str, root: str) -> str:
    """A phase as given; a step plan is found from the current folder too, as `idumb execute` finds it."""
    from idumb.domain.plans import step_plan

    if given.endswith(step_plan.SUFFIXES) and os.path.isfile(given):
        return from_root(given, root)
    return given


_LARGEST_TEXT = 32 * 1024 * 1024 + 1  # one byte more than a plan may have: its reader says that it is too large


def text_of(name: str, command: str) -> str:
    """The bytes of a regular file that is named, or of standard input for `-`, as text with surrogate escapes."""
    from idumb.domain.errors import InputError
    from idumb.system.files import plain_files

    try:
        if name == "-":
            return sys.stdin.buffer.read(_LARGEST_TEXT).decode("utf-8", "surrogateescape")
        return plain_files.read(name, _LARGEST_TEXT).decode("utf-8", "surrogateescape")
    except OSError as problem:
        words = f"{name} cannot be read: {problem.strerror or problem}"
        hint = f"idumb {command} --help; a file is named, or - for standard input"
        raise InputError("file.unreadable", words, hint=hint) from problem


def teller(*, as_json: bool) -> Callable[[str], None]:
    """Says on standard error what a command waits for; nothing where a program reads the answer."""

    def tell(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody is there to be told
            output.write(None if as_json else sys.stderr, text + "\n")

    return tell


def who() -> str:
    """The name under which a person's word is recorded."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _asker(container: Container, *, as_json: bool) -> Asker:
    from idumb.views import ask

    if as_json:
        return ask.Nobody()
    return ask.at_terminal(container.interrupts.armed, lambda: _ask_timeout(container), output.redacted)


def _ask_timeout(container: Container) -> float:
    """Seconds that a question waits; the usual ones where the configuration cannot be read, which others report."""
    from idumb.domain.errors import IdumbError
    from idumb.domain.settings import ASK_TIMEOUT

    try:
        return float(container.settings.ask.get("timeout", ASK_TIMEOUT))
    except (IdumbError, OSError):
        return float(ASK_TIMEOUT)


def _reporter(*, as_json: bool, events: bool, progress: bool) -> Reporter:
    from idumb.cli import reporters

    if events:
        return reporters.EventLines(sys.stdout)
    if as_json or not progress:
        return reporters.Silent()
    return reporters.for_people()


def _farewell(number: int, *, as_json: bool) -> None:
    """The last words of a program that was told twice to stop; written past all buffers."""
    import json

    from idumb.domain.errors import Interrupted
    from idumb.views import answer

    known = Interrupted(number)
    words = "stopped at once; the next idumb resume recovers what was being done"
    command = next((a for a in sys.argv[1:] if not a.startswith("-")), "idumb")
    error: dict[str, Any] = {"code": known.code, "message": words, "hint": known.hint, "details": {}}
    if as_json:
        os.write(1, json.dumps(answer.whole(command, data={}, error=error)).encode("ascii") + b"\n")
    else:
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(2, b"\x1b[?25h\n")  # the live display hides the cursor
        os.write(2, f"idumb: {words} [{known.code}]\n  next: {known.hint}\n".encode("ascii"))


def _stop(container: Container) -> None:
    stop = getattr(container.__dict__.get("reporter"), "stop", None)
    if stop is not None:
        stop()


def _require_platform(*, writes: bool) -> None:
    if writes and sys.platform == "win32":
        from idumb.domain.errors import Refusal

        raise Refusal("system.windows", "Running plans is not supported on Windows yet; reading commands work.")
