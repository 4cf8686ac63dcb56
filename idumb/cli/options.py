"""How a command is made: its group, the options that several commands share, and the services that it gets."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from idumb.cli import arguments, output
from idumb.domain import errors, finding
from idumb.domain.action import Action
from idumb.system import user_folders

if TYPE_CHECKING:
    from idumb.app.core.services import Result
    from idumb.composition.container import Container as Container  # noqa: PLC0414 - of the signatures of commands

F = TypeVar("F", bound=Callable[..., Any])

_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
"""An option of every command."""
phase = click.argument("phase", shell_complete=arguments.phases)
task = click.argument("task", shell_complete=arguments.tasks)
yes = click.option("--yes", is_flag=True, help="Do not ask.")


READS: Mapping[str, bool] = {}
ANYWHERE = {"initialised": False}
WRITES = {"writes": True}
RUNS = {"progress": True}
"""How a command opens the services of the repository; see `services`."""


def command(
    name: str,
    use_case: str = "",
    *,
    opens: Mapping[str, bool] | None = None,
    person: bool = False,
    group: Group | None = None,
    view: str = "",
) -> Callable[[Callable[..., Result | None]], click.Command]:
    """Decorate a function as a command: adds the options of every command, and prints the result that it returns.

    - `use_case`: the path of a function, which gets the options. The decorated function is then only the help.
    - `opens`: the function gets the services of the repository, opened so. `person`: only a person may run the command.
    - `group`: the group of a subcommand. The answer has the name of the group.
    - `view`: what makes the text of the answer: `module.name` of `idumb.views.answers`, or a name in the module of this
      file; by default the name of the function. An option `view` of the command selects another name in that module.
    """
    command_name = name if group is None else str(group.name)

    def decorate(function: Callable[..., Result | None]) -> click.Command:
        module = function.__module__.rpartition(".")[2].removesuffix("_commands")
        usual = view or function.__name__.removesuffix("_command")
        if "." in usual:
            module, usual = usual.split(".")

        @functools.wraps(function)
        def invoke(*, as_json: bool, events: bool = False, **values: Any) -> int:
            _require_values(click.get_current_context())
            if person:
                require_person(f"idumb {name}" if group is None else f"idumb {command_name} {name}")
            if events and as_json:
                raise click.UsageError("--events and --json both write to standard output; choose one.")
            with contextlib.ExitStack() as stack:
                if opens is not None:
                    values["services"] = stack.enter_context(services(**opens))
                result = _call(use_case, values) if use_case else function(**values)
            if result is None:
                return 0
            try:
                shown_as = f"{module}.{values.get('view') or usual}"
                return output.finish(command_name, result, shown_as, as_json=as_json, quiet=events)
            except OSError as problem:
                return output.report_unwritable(problem)

        click_command = click.command(name)(invoke)
        click_command.params.append(_JSON)
        if group is not None:
            group.add_command(click_command)
        return click_command

    return decorate


def _call(path: str, values: dict[str, Any]) -> Result:
    """Call a use case with the services, the options of its command, and the user who gave it if it takes one."""
    module, _, function = path.rpartition(".")
    use_case: Callable[..., Result] = getattr(importlib.import_module(f"idumb.{module}"), function)
    values |= {word: user_folders.user_name() for word in ("who", "by") if word in use_case.__annotations__}
    if values.get("phase"):
        values["phase"] = arguments.phase_id(values["phase"], values["services"].root)
    return use_case(**values)


def is_text(value: object) -> bool:
    """Return whether the texts of a value are UTF-8; only the name of a file may have other bytes."""
    if isinstance(value, tuple):
        return all(map(is_text, value))
    return not isinstance(value, str) or value.encode("utf-8", "replace").decode() == value


_PATHS = frozenset({"FILE", "FOLDER", "KEY", "PATH"})
_NAMES = _PATHS | {"BINDING", "COMMIT", "NAME"}
"""None of these values is empty: a variable that is not set, as in `--branch "$BRANCH"`, would choose another one."""


def _require_values(context: click.Context) -> None:
    """Refuse bytes that are no text, empty names, two views, and an option as the value of another: `--why --json`."""
    for param in context.command.params:
        value, name = context.params.get(param.name or ""), str(param.name)
        if not (param.metavar in _PATHS or name == "path" or is_text(value)):
            raise click.BadParameter("it is not UTF-8.", context, param)
        if (param.metavar or name.upper()) in _NAMES and "" in (value if isinstance(value, tuple) else (value,)):
            raise click.BadParameter("it is empty.", context, param)
    given = [option for option in context.command.params if isinstance(option, click.Option)]
    views = [word for word in context.find_root().obj or () if any(o.name == "view" and word in o.opts for o in given)]
    if len({*views}) > 1:
        raise click.UsageError(f"Use only one of {', '.join(dict.fromkeys(views))}.")
    words = {*context.help_option_names, *(word for option in given for word in option.opts)}
    for option in given:
        value = context.params.get(option.name or "")
        if isinstance(value, str) and value in words:
            raise click.BadOptionUsage(option.opts[0], f"Option {option.opts[0]!r} requires an argument.", context)


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
_FORMS = frozenset({"--json", "--events", "--yes"})


def _typed(line: Sequence[str]) -> tuple[str, ...]:
    """Return the command line without consent, answers, and forms of the output."""
    words: list[str] = []
    for before, word in zip(("", *line), line, strict=False):
        option = word.partition("=")[0]
        if option not in _ANSWERS | _FORMS and before not in _ANSWERS:
            words.append(word)
    end = words.index("--") if "--" in words else len(words)
    if not any(word.startswith("-") for word in words[end + 1 :]):  # then the mark separates nothing
        del words[end : end + 1]
    return tuple(words)


class Group(click.Group):
    """Commands under one name, as in `idumb dlq list`. `elsewhere`: words of other programs, with what to type here."""

    def __init__(self, name: str | None, elsewhere: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(name, no_args_is_help=False, **more)
        self.elsewhere = elsewhere or {}

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the commands, by the heading under which the help lists them."""
        return {"Commands": list(self.commands)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections().values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with the first paragraph of its help, whole: click would cut it at the width."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in self.sections().items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(n.ljust(width), (c.help or "").partition("\n\n")[0]) for n, c in commands if c])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if ctx.resilient_parsing or args[0] in names:
            return super().resolve_command(ctx, args)
        word, place = args[0], ctx.command_path.partition(" ")[2]
        message = f"No such command '{f'{place} {word}'.strip()}'."
        if word in self.elsewhere:
            named = itertools.takewhile(lambda each: not each.startswith("-"), args[1:])  # options differ
            hint = self.elsewhere[word].format(shlex.join(named) or ("W1" if place else "")).rstrip()
            raise errors.UsageError("usage", message, hint=hint)
        longer = (name for name in names if len(word) > 2 and name.startswith(word))
        raise _Mistyped(message, next(longer, None) or finding.nearest(word, names), ctx)


class _Mistyped(click.UsageError):
    """A word that does not exist. `nearest` is what the user probably meant, or None."""

    def __init__(self, message: str, nearest: str | None, ctx: click.Context | None) -> None:
        super().__init__(suggest(message, nearest), ctx)
        self.nearest = nearest


def unknown_option(problem: click.NoSuchOption) -> _Mistyped:
    """Return the error for an unknown option. Hidden options are not suggested."""
    ctx, word = problem.ctx, problem.option_name
    shown = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option) and not p.hidden] if ctx else []
    # Without their dashes, which all have: `--reason` would otherwise resemble `--json`.
    names = {n.lstrip("-"): n for candidate in shown for n in (*candidate.opts, *candidate.secondary_opts)}
    return _Mistyped(f"No such option {word!r}.", names.get(finding.nearest(word.lstrip("-"), names) or ""), ctx)


def nothing_of_name(command: str, message: str, word: str, names: Iterable[str]) -> errors.UsageError:
    """Return the error for a name that `command` does not know; without one, `command` lists all."""
    near = finding.nearest(word, names)
    return errors.UsageError("usage", suggest(message, near), hint=Action.of(command, *([near] if near else [])))


def suggest(message: str, nearest: str | None) -> str:
    return f"{message} Did you mean {nearest!r}?" if nearest else message


def view(option: str, words: str, name: str = "") -> Callable[[F], F]:
    """Add an option that selects another view of the answer; the command receives its name as `view`."""
    return click.option(f"--{option}", "view", flag_value=name or option, help=words)


def flag(name: str) -> bool:
    """Return whether the command that runs was given this flag."""
    return bool(click.get_current_context().params.get(name))


def require_person(word: str) -> None:
    """Refuse (`agent.not-a-person`) inside an agent or a check that idumb started for this repository."""
    from idumb.composition import before_services

    inside = before_services.surrounding_agent(os.getcwd())
    if inside is None:
        return
    raise errors.Refusal(
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
dry_run = click.option("--dry-run", is_flag=True, help="Run in a throw-away copy; print the change.")
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
"""The options of every command that runs tasks; except --events, they are the fields of its `RunRequest`."""


def progress_writer() -> Callable[[str], None]:
    """Return a function that writes a line to standard error, or nothing with --json."""

    def write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            output.write(stream, text + "\n")

    stream = None if flag("as_json") else sys.stderr
    return write
