"""Options that several commands share, and how their values name files and phases."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from idumb.cli import completion, mistyped, output
from idumb.domain.action import Action

if TYPE_CHECKING:
    from idumb.app.core.result import Result
    from idumb.app.core.services import Services
    from idumb.composition.container import Container as Container  # noqa: PLC0414 - of the signatures of commands

F = TypeVar("F", bound=Callable[..., Any])

_EVERYWHERE = (
    click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
    click.Option(["--traceback"], is_flag=True, hidden=True, expose_value=False),
)
phase = click.argument("phase", shell_complete=completion.phases)
task = click.argument("task", shell_complete=completion.tasks)
yes = click.option("--yes", is_flag=True, help="Do not ask.")


class Group(mistyped.Group):
    """Several commands under one name, such as `idumb dlq list`."""

    def __init__(self, name: str, words: str, elsewhere: Mapping[str, str] | None = None) -> None:
        super().__init__(name, help=words, no_args_is_help=False)
        self.elsewhere = elsewhere or {}


READS: Mapping[str, bool] = {}
ANYWHERE = {"initialised": False}
WRITES = {"writes": True}
RUNS = {"progress": True}
"""How a command opens the services of the repository; see `services`."""


def command(
    name: str,
    *,
    opens: Mapping[str, bool] | None = None,
    person: bool = False,
    group: Group | None = None,
    text: str = "",
) -> Callable[[Callable[..., Result | None]], click.Command]:
    """Decorate a function as a command: adds the options of every command, and prints the result that it returns.

    With `opens`, the function receives the services of the repository. With `person`, only a person may run it.
    `group` is that of a subcommand, whose answer has its name. `text` is the `module.function` that makes its text; by
    default those of this group and this name.
    """
    answers = name if group is None else str(group.name)

    def decorate(function: Callable[..., Result | None]) -> click.Command:
        module = function.__module__.rpartition(".")[2].removesuffix("_commands")
        usual = text or f"{module}.{function.__name__.removesuffix('_command')}"

        @functools.wraps(function)
        def invoke(*, as_json: bool, events: bool = False, **values: Any) -> int:
            if person:
                require_person(f"idumb {name}" if group is None else f"idumb {answers} {name}")
            if events and as_json:
                raise click.UsageError("--events and --json both write to standard output; choose one.")
            with contextlib.ExitStack() as stack:
                if opens is not None:
                    values["services"] = stack.enter_context(services(**opens))
                result = function(**values)
            if result is None:
                return 0
            view = values.get("view") or usual
            shown_as = view if "." in view else f"{module}.{view}"
            try:
                return output.finish(answers, result, shown_as, as_json=as_json, quiet=events)
            except OSError as problem:
                return output.unwritten(problem)

        click_command = click.command(name)(invoke)
        click_command.params += _EVERYWHERE
        if group is not None:
            group.add_command(click_command)
        return click_command

    return decorate


def view(name: str, words: str, text: str = "") -> Callable[[F], F]:
    """Add an option that selects another text for the answer; the command receives that as `view`."""
    return click.option(f"--{name}", "view", flag_value=text or name, help=words)


def flag(name: str) -> bool:
    """Return whether the command that runs was given this flag."""
    return bool(click.get_current_context().params.get(name))


def require_person(word: str) -> None:
    """Refuse (`agent.not-a-person`) inside an agent or a check that idumb started for this repository."""
    from idumb.composition import status_view

    inside = status_view.surrounding_agent(os.getcwd())
    if inside is None:
        return
    from idumb.domain.errors import Refusal

    raise Refusal(
        "agent.not-a-person",
        f"Only a person may use {word}, and this command runs inside {inside}. Nothing was done.",
        hint="Ask a person to run it in their own terminal",
        details={"word": word, "inside": inside},
    )


def people_only_option(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Click callback of an option that only a person may use."""
    if value:
        require_person(parameter.opts[0])
    return value


def many(option: str, metavar: str | None, text: str, field: str = "", **more: Any) -> Callable[[F], F]:
    """Return an option that can be given several times. `field` is the name of its values."""
    names = [option, *([field] if field else [])]
    return click.option(*names, multiple=True, metavar=metavar, help=f"{text} Repeatable.", **more)


def approve(text: str) -> Callable[[F], F]:
    """Return the option `--approve`, whose hashes name what the user consents to."""
    return many("--approve", "HASH", text, callback=people_only_option)


accept_git = many(
    "--accept-git",
    "FILE",
    "Accept this file of git's own, which changed while a task ran.",
    callback=people_only_option,
)
accept_changed = click.option(
    "--accept-changed",
    is_flag=True,
    callback=people_only_option,
    help="Continue although an agent, or anything else in the envelope, changed.",
)
mode = click.option("--mode", type=click.Choice(["guided", "strict"]), help="Override the mode of the plan.")
dry_run = click.option(
    "--dry-run", "rehearsal", is_flag=True, help="Run in a throw-away copy and print the change; keep nothing."
)
approval = click.option("--approval", metavar="FILE", help="A signed approval (see approve --sign --file).")
on_deviation = click.option(
    "--on-deviation",
    type=click.Choice(["keep", "leave-out", "stop"]),
    help="Keep changes outside the declared files, deliver the rest without them, or stop.",
)
events = click.option("--events", is_flag=True, help="Print each event as a JSON line during the run.")


def negative(option: str, field: str, text: str) -> Callable[[F], F]:
    """Return an option that sets `field` to False; it is True by default."""
    return click.option(option, field, flag_value=False, default=True, help=text)


def together(*several: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator for several options, which are listed in this order."""
    return lambda function: functools.reduce(lambda whole, option: option(whole), reversed(several), function)


running = together(
    approve("Consent to all that would run; check-plan shows the hash."),
    approval,
    mode,
    click.option("--max-attempts", type=click.IntRange(1, 100), help="The maximum number of attempts per task."),
    on_deviation,
    accept_git,
    negative("--no-verify", "verify", "Do not verify the phase at the end."),
    accept_changed,
    click.option("--deterministic", is_flag=True, help="Fail a task whose result differs under the same envelope."),
    events,
)
"""The options of every command that runs tasks; except --events, they are the fields of its `Request`."""


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an ISO 8601 date or time in the spelling of the log, in UTC. Other spellings would match no event."""
    from datetime import UTC, datetime

    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time. Write 2026-01-31 or 2026-01-31T12:00:00Z.", ctx, param
        ) from None
    utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@contextlib.contextmanager
def services(*, progress: bool = False, writes: bool = False, initialised: bool = True) -> Iterator[Container]:
    """Yield the services of the repository that contains the current folder; see `opened_services`.

    `initialised`: whether the command needs a repository in which idumb is set up (`state.not-initialised`).
    """
    from idumb.app.worktree import preconditions
    from idumb.cli import opened_services

    forms = {name: flag(name) for name in ("as_json", "events")}
    with opened_services.opened(**forms, progress=progress, writes=writes) as container:
        container.typed = _typed(click.get_current_context().find_root().obj or ())
        if initialised:
            preconditions.require_initialised(container)
        yield container


_ANSWERS = frozenset({"--approve", "--hash"})
_FORMS = frozenset({"--json", "--events", "--traceback", "--yes"})


def _typed(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line without consent, answers, and forms of the output."""
    words: list[str] = []
    for before, word in zip(("", *arguments), arguments, strict=False):
        option = word.partition("=")[0]
        if option not in _ANSWERS | _FORMS and before not in _ANSWERS:
            words.append(word)
    end = words.index("--") if "--" in words else len(words)
    if not any(word.startswith("-") for word in words[end + 1 :]):  # then the mark separates nothing
        del words[end : end + 1]
    return tuple(words)


def step_plan_path(file: str, root: str) -> str:
    """Return the path of a step plan from the repository's root. Links in its folder are resolved.

    A name without a folder that is no file here is returned unchanged: it may be a phase.
    """
    folder, name = os.path.split(os.path.join(os.getcwd(), file))
    if not os.path.lexists(os.path.join(folder, name)) and "/" not in file:
        return file
    return os.path.relpath(os.path.join(os.path.realpath(folder), name), os.path.realpath(root)).replace(os.sep, "/")


def phase_id(phase: str, root: str) -> str:
    """Return the phase of a phase, plan file or step plan; the path of a step plan is made relative to the root."""
    from idumb.domain.plans import phase_ids

    if phase.endswith(phase_ids.SUFFIXES) and os.path.isfile(phase):
        return step_plan_path(phase, root)
    path = plan_file(phase, root)
    return phase if path is None else phase_of_file(path) or phase


def plan_file(name: str, root: str) -> str | None:
    """Return the path of a plan in Markdown from the repository's root, or None if the name is no such file."""
    return step_plan_path(name, root) if name.endswith(".md") and os.path.isfile(name) else None


def source_path(name: str, services: Services) -> str:
    """Return the path of a file or folder from the project's folder; outside the repository, an absolute one.

    Elsewhere in the repository it begins with `../`, so that the plan names the same file in every clone.
    """
    if not name:
        from idumb.domain.errors import InputError

        raise InputError("import.no-path", "No file or folder was named.", hint=Action.of("import", "--help"))
    whole, root = os.path.realpath(name), os.path.realpath(services.root)
    top = root.removesuffix(f"/{services.folder}") if services.folder else root
    inside = whole == top or whole.startswith(top.rstrip("/") + "/")
    return os.path.relpath(whole, root).replace(os.sep, "/") if inside else whole


def phase_of_file(path: str) -> str | None:
    """Return the phase whose folder holds a plan; None for a file elsewhere."""
    from idumb.domain.plans import phase_ids

    match = _IN_PHASE.fullmatch(path)
    if match is None:
        return None
    if match[1] == "phases":
        return match[2]
    return next(filter(None, (kind.phase_of(path) for kind in phase_ids.NUMBERED)), None)


_IN_PHASE = re.compile(r"\.planning/(phases|quick|workflows)/([^/]+)/[^/]*PLAN\.md")


def declared_path(path: str, root: str) -> str:
    """Return a path that a task declares, from the repository's root. The file need not exist; links are not resolved.

    A slash at the end stays: it declares a folder. An absolute path is returned unchanged: plan checks reject it.
    """
    if os.path.isabs(path):
        return path
    relative = os.path.relpath(os.path.join(os.path.realpath(os.getcwd()), path), os.path.realpath(root))
    return relative.replace(os.sep, "/") + "/" * path.endswith("/")


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return the values of an option that is written NAME=VALUE, by their names."""
    values = dict(text.partition("=")[::2] for text in texts if "=" in text)
    if len(values) < len(texts):
        raise click.UsageError(f"{option} needs a value: {option} NAME=VALUE, each name once.")
    return values


def require_free(path: str) -> None:
    """Refuse to write a file where something is already. InputError `file.exists`."""
    from idumb.domain.errors import InputError

    if os.path.lexists(path):
        raise InputError("file.exists", f"{path} already exists.", hint="Choose another name, or move it away")


_LARGEST_TEXT = 32 * 1024 * 1024 + 1  # one byte more than a plan may have, so that the parser reports it as too large


def read_text(name: str, command: str) -> str:
    """Return the text of a regular file, or of standard input for `-`. Undecodable bytes become surrogates."""
    from idumb.domain.errors import InputError
    from idumb.system.files import named_files

    try:
        if name == "-":
            return sys.stdin.buffer.read(_LARGEST_TEXT).decode("utf-8", "surrogateescape")
        return named_files.read(name, _LARGEST_TEXT).decode("utf-8", "surrogateescape")
    except OSError as problem:
        message = f"Cannot read {name}: {problem.strerror or problem}"
        hint = f"Name a file, or - for standard input (idumb {command} --help)"
        raise InputError("file.unreadable", message, hint=hint) from problem


def progress_writer() -> Callable[[str], None]:
    """Return a function that writes a line to standard error, or nothing with --json."""

    def write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            output.write(stream, text + "\n")

    stream = None if flag("as_json") else sys.stderr
    return write
