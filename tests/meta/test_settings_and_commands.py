"""`settings-and-commands.md` says of each setting, command and option whether users still have it."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import click

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.cli import main, options
from idumb.domain.errors import IdumbError
from idumb.domain.finding import Finding
from idumb.domain.settings import Binding, Settings
from idumb.markdown import configuration
from tests.meta import source

PAGE = source.ROOT / "tests" / "meta" / "settings-and-commands.md"
ROWS = 596
"""How many names the old version had: a row is changed, never removed."""

_ROW = re.compile(r"^\| `([^`]+)` \| (?:(kept)|(gone)|(new)|renamed to `([^`]+)`) \| (.*)\|$")
_NOBODY_WROTE = "written-by-nobody"
_ALIKE = {"roles": "<role>", "gates": "<gate>", "profiles.<name>": "<role>"}
"""Sections whose keys have the same keys below them; a row names these once."""


class Row(NamedTuple):
    """`state` is `kept`, `gone`, `new` or `renamed`; `target` is the new name."""

    name: str
    state: str
    target: str
    reason: str


@cache
def rows() -> tuple[Row, ...]:
    lines = [line for line in source.text(PAGE).splitlines() if line.startswith("| `")]
    return tuple(_row(line) for line in lines)


def _row(line: str) -> Row:
    cells = _ROW.match(line)
    assert cells is not None, line
    state = cells[2] or cells[3] or cells[4] or "renamed"
    return Row(cells[1], state, cells[5] or "", cells[6].strip())


@cache
def present() -> frozenset[str]:
    """Every name that the program has now, as the page spells it."""
    named = [row.target or row.name for row in rows()]
    of_own_gates = () if _findings(("gates", "own", "entry_point"), "a") else ("gates.<gate>.entry_point",)
    return frozenset((*settings(), *of_own_gates, *policies(), *adapters(), *commands(), *filter(is_accepted, named)))


def settings(*path: str) -> Iterator[str]:
    """The keys below a key, and the values of a key with few values: the program names them all when it refuses one."""
    name = ".".join(_shown(path))
    findings = {finding.field: finding for finding in _findings(path, _NOBODY_WROTE)}
    values = findings.get(".".join(path))
    if path and values is not None and values.accepted.startswith("one of "):
        yield from (f"{name}: {value}" for value in values.accepted.removeprefix("one of ").split(", "))
    findings = {finding.field: finding for finding in _findings((*path, _NOBODY_WROTE), "1")}
    unknown = findings.get(".".join((*path, _NOBODY_WROTE)))
    if unknown is None:
        return
    is_open = unknown.code != "config.unknown-key"
    keys = [_NOBODY_WROTE] if is_open else unknown.accepted.split(", ")
    for number, key in enumerate(keys):
        if not is_open:
            yield f"{name}.{key}".lstrip(".")
        if number == 0 or name not in _ALIKE or name == "gates":
            yield from settings(*path, key)


def _findings(path: Iterable[str], value: str) -> tuple[Finding, ...]:
    text = json.dumps(value)
    for key in reversed(tuple(path)):
        text = f"{{{key}: {text}}}"
    return configuration.read(text.encode())[1]


def _shown(path: tuple[str, ...]) -> Iterator[str]:
    for number, key in enumerate(path):
        section = ".".join(_shown(path[:number]))
        yield "<name>" if key == _NOBODY_WROTE else _ALIKE.get(section, key)


def policies() -> Iterator[str]:
    (unknown,) = configuration.read_policy(f"{_NOBODY_WROTE}: 1".encode())[1]
    yield from (f"policy: {key}" for key in unknown.accepted.split(", "))


def adapters() -> Iterator[str]:
    yield from (f"bindings.<name>.adapter: {name}" for name in registry.ADAPTERS)


def is_accepted(name: str) -> bool:
    """Return whether the program takes what it never lists: `ADAPTER options.KEY`, or `KEY: VALUE`."""
    adapter, _, option = name.partition(" options.")
    if option:
        return adapter in registry.ADAPTERS and _refused(adapter, option) != _refused(adapter, _NOBODY_WROTE)
    key, _, value = name.partition(": ")
    return bool(value) and "<" not in key and key != "policy" and not _findings(key.split("."), value)


def _refused(adapter: str, option: str) -> str:
    """Return the words about an option with a value that no option takes, without its name."""
    wrong: Mapping[str, object] = {option: (object,)}
    binding = Binding("b", adapter, argv=("true",), options=wrong)
    equipment = Equipment(Settings(bindings={"b": binding}), "/nowhere", lambda *_: (False, ""), str)
    try:
        registry.build(equipment).get("b").describe()
    except IdumbError as refused:
        return refused.message.replace(f"option {option}", "")
    return ""


def commands() -> Iterator[str]:
    """Every command, its actions, its options and their choices; an option that all commands have comes once."""
    whole = click.Context(main.group, **main.group.context_settings)
    of_command = {name: frozenset(_parts(main.group.get_command(whole, name), whole)) for name in main.COMMANDS}
    everywhere = frozenset.intersection(*of_command.values())
    yield from (f"idumb {part}" for part in _parts(main.group, whole))
    yield from (f"idumb COMMAND {part}" for part in everywhere)
    for name, parts in of_command.items():
        yield from (f"idumb {name}", *(f"idumb {name} {part}" for part in parts - everywhere))


def _parts(command: click.Command | None, whole: click.Context) -> Iterator[str]:
    assert command is not None
    if isinstance(command, options.Group) and command is not main.group:
        for name, one in command.commands.items():
            yield from (name, *_parts(one, whole))
        return
    for parameter in command.get_params(click.Context(command, parent=whole)):
        choices = parameter.type.choices if isinstance(parameter.type, click.Choice) else ()
        if isinstance(parameter, click.Argument):
            yield from choices
        elif "--help" in parameter.opts:
            yield from whole.help_option_names  # click keeps the names of the first context that asked
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            yield from (*parameter.opts, *parameter.secondary_opts)
            yield from (f"{parameter.opts[-1]} {choice}" for choice in choices)


def test_each_name_has_one_row_and_no_row_of_the_old_version_is_lost() -> None:
    names = [row.name for row in rows()]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    assert sum(row.state != "new" for row in rows()) == ROWS


def test_users_still_have_what_the_page_calls_kept_or_renamed_or_new() -> None:
    missing = {row.target or row.name for row in rows() if row.state != "gone"} - present()
    assert not missing, f"mark as gone, with the reason, or as renamed: {', '.join(sorted(missing))}"


def test_what_the_page_calls_gone_or_renamed_is_gone() -> None:
    left = {row.name for row in rows() if row.state in {"gone", "renamed"}} & present()
    assert not left, f"the program still has: {', '.join(sorted(left))}"
    assert [row.name for row in rows() if row.state == "gone" and not row.reason] == []


def test_the_page_names_every_setting_command_and_option() -> None:
    unnamed = present() - {row.target or row.name for row in rows()}
    assert not unnamed, f"add to the table of what is new: {', '.join(sorted(unnamed))}"


def test_a_command_that_names_its_use_case_has_the_options_that_this_takes() -> None:
    for place in source.python_files("idumb/cli"):
        named = re.findall(r'command\(\s*"[\w-]+", "([\w.]+)\.(\w+)"(?:.|\n)*?\ndef (\w+)', place.read_text())
        for module, function, command in named:
            use_case = getattr(importlib.import_module(f"idumb.{module}"), function)
            options_of = getattr(importlib.import_module(f"idumb.cli.{place.stem}"), command).params
            passed = {option.name for option in options_of} - {"as_json", "traceback"} | {"services"}
            taken = inspect.signature(use_case)
            user = {"who", "by"} & taken.parameters.keys() - passed
            taken.bind(**dict.fromkeys(passed | user))
