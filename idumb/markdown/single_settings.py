"""Single settings: each with its value and where that is from, overridden by variables, or changed in a file's text.

The user's own file, `~/.config/idumb/config.yaml`, has what no repository may set.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain.action import Action
from idumb.domain.errors import InputError, UsageError
from idumb.domain.finding import Finding, did_you_mean
from idumb.domain.settings import NOTICES, Notify, Settings
from idumb.domain.wording import line_end
from idumb.markdown import configuration, setting_types
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.source import CONFIG, Place, Source
from idumb.markdown.syntax.tree import NULLS, Node
from idumb.markdown.syntax.value_types import BOOLEAN, Keys, ValueType, choice, list_of, matching, section
from idumb.system import child_process, user_folders

_Names = tuple[str, ...]


# Every setting


class Setting(NamedTuple):
    """`value` is what its file says, None if it says nothing; `source` is then `default`, else file and line.

    `is_text`: any text may be its value, also one that YAML would read as something else.
    """

    name: str
    accepted: str
    default: Any
    value: Any
    source: str
    of_user: bool
    is_text: bool


def every(project: bytes | None, user: bytes | None) -> tuple[Setting, ...]:
    """Return all settings of the project's file and of the user's, in the order of their keys."""
    own = _of(_USER_KEYS, user, user_path(), {"notify": Notify()}, of_user=True)
    return (*_of(setting_types.KEYS, project, configuration.PATH, Settings(), of_user=False), *own)


def overridden(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Yield the settings with the values of variables."""
    variables = {".".join(names): row for names, row in _variables_given().items()}
    for one in settings:
        variable, value = variables.get(one.name, ("", ""))
        yield one._replace(value=value, source=variable) if variable and not one.of_user else one


def no_setting(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name or a variable of no setting."""
    near = did_you_mean(name, known, "idumb config list --all names them")
    hint = Action.of("config", "list", "--all")
    return UsageError("config.unknown-setting", f"There is no setting {name}; {near}", hint=hint)


def _of(keys: Keys, data: bytes | None, path: str, usual: Any, *, of_user: bool) -> Iterator[Setting]:
    root, source = configuration.parsed(data or b"", path, CONFIG)
    for names, type in _leaves(keys):
        node = tree.find(root, *names)
        value, place = None, "default"
        if node is not None and not node.is_null:  # a value as the file has it, on one line
            value = " ".join(source.text[node.start : node.end].split())
            place = f"{path}:{source.line_number(node.start)}"
        is_text = bool(type.schema.get("type") == value_types.ANY_TEXT["type"])
        yield Setting(".".join(names), type.accepted, _default(usual, names), value, place, of_user, is_text)


def _default(usual: Any, names: tuple[str, ...]) -> Any:
    """Return the value without any file, as plain data; None if nothing is set."""
    for name in names:
        usual = usual.get(name) if isinstance(usual, Mapping) else getattr(usual, name, None)
    if isinstance(usual, (Struct, Mapping)):
        return None
    return list(usual) if isinstance(usual, tuple) else usual


def _leaves(keys: Keys, above: _Names = ()) -> Iterator[tuple[_Names, ValueType]]:
    """Yield the names of each setting, and its type."""
    for name, type in keys.items():
        if type.keys:
            yield from _leaves(type.keys, (*above, name))
        else:
            yield (*above, name), type


# Variables such as `IDUMB_RUN_MAX_ATTEMPTS`, and `--set`

# What concerns consent or trust has no variable: which programs run, what they may do, and who judges.
_SECTIONS = frozenset({"ask", "breaker", "git", "retry", "run", "snapshot"})
_PREFIXES = tuple(f"IDUMB_{section.upper()}_" for section in _SECTIONS)
_TRUSTED = frozenset({"git.hooks", "git.network", "run.on_deviation"})
_COMMENT = re.compile(r"(?:^|\s)#")


def choose(name: str, value: str) -> None:
    """Let a value of the command line override variable and file, as long as this process lives.

    UsageError for a setting that is unknown or cannot be overridden, and for a value that it does not accept.
    """
    rows = {".".join(names): names for names, _ in _leaves(setting_types.KEYS)}
    if name not in rows:
        raise no_setting(name, rows)
    try:
        _require_free(rows[name], f"--set {name}", f"idumb config explain {name}")
        _read(rows[name], value, f"--set {name}", f"idumb config explain {name}")
    except InputError as wrong:
        raise UsageError("config.variable", wrong.message, hint=wrong.step) from wrong
    child_process.set_variable(_variable(rows[name]), value)


def _variable(names: _Names) -> str:
    return f"IDUMB_{'_'.join(names)}".replace("-", "_").upper()


def _require_free(names: _Names, given: str, hint: str) -> None:
    """Refuse to override a setting that consent covers."""
    if names[0] not in _SECTIONS or ".".join(names) in _TRUSTED:
        words = f"{given} is refused: consent covers {'.'.join(names)}, so only {configuration.PATH} sets it."
        raise InputError("config.variable", words, hint=hint)


def _variables_given() -> dict[_Names, tuple[str, str]]:
    """Return variable and value of each setting that has one now. InputError `config.variable` if it may have none.

    A variable without a value says nothing, like a key without one in a file.
    """
    rows = {_variable(names): names for names, _ in _leaves(setting_types.KEYS)}
    for unknown in sorted({*child_process.variables()} - rows.keys()):
        if unknown.startswith(_PREFIXES):
            raise no_setting(unknown, rows)
    values = child_process.environment(rows)
    for variable in values:
        _require_free(rows[variable], variable, f"unset {variable}")
    filled = {name: value for name, value in values.items() if _COMMENT.split(value)[0].strip() not in NULLS}
    return {rows[name]: (name, value) for name, value in filled.items()}


def load(root: str) -> Settings:
    """Return the settings of the repository at `root` with those of variables. Raises InputError with findings."""
    chosen = configuration.load(root)
    for names, (variable, value) in _variables_given().items():
        chosen = _with(chosen, _read(names, value, variable, f"Correct or unset {variable}"), names)
    return chosen


def _read(names: _Names, value: str, given: str, hint: str) -> Settings:
    """Return settings of which one has this value. InputError `config.variable` if the setting does not accept it."""
    lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(names)]
    read, findings = configuration.read(f"{chr(10).join(lines)} {value}".encode("utf-8", "surrogateescape"), given)
    if read is None:
        raise configuration.rejected("config.variable", findings, hint, given)
    return read


def _with(whole: Settings, other: Settings, names: _Names) -> Settings:
    """Return settings in which one, with the name of its section, is that of the other ones."""
    section, name = names
    part, own = getattr(other, section), getattr(whole, section)
    changed = {**own, name: part[name]} if isinstance(own, Mapping) else replace(own, **{name: getattr(part, name)})
    return replace(whole, **{section: changed})


# A change of one setting in a text, of which every other byte stays


def with_setting(data: bytes, shown: str, keys: Sequence[str], value: str) -> bytes:
    """Return the file with this value, as YAML writes it, at a path of keys. `shown` is its name in messages.

    Raises InputError `config.invalid` if the file is no YAML, or `config.not-editable` if a value is in the way that
    only an editor can change.
    """
    root, source = configuration.parsed(data, shown, CONFIG)
    if source.any_error:
        raise configuration.rejected("config.invalid", source.sorted(), f"Fix {shown}")
    return _with_value(source, root, keys, value, shown).encode("utf-8", "surrogateescape")


def as_text(value: str) -> str:
    """Return a text as YAML: as it is in quotes, or if YAML reads exactly it; else in double quotes."""
    if value[:1] in ("'", '"') or value.strip() in NULLS:
        return value
    data = f"text: {value}".encode("utf-8", "surrogateescape")
    root, _ = configuration.parsed(data, "", CONFIG)
    read = tree.find(root, "text")
    return value if read is not None and read.value == value else json.dumps(value, ensure_ascii=False)


def _with_value(source: Source, root: Node | None, keys: Sequence[str], value: str, shown: str) -> str:
    text = source.text
    pairs = [*tree.path(root, keys)]
    node, depth = pairs[-1][1] if pairs else root, len(pairs)
    if node is None:
        return _appended(text, _block(keys, value, ""))
    if depth == len(keys) or (node.is_null and depth > 0):
        return _replaced(text, node, keys[depth:], value, shown)
    if node.kind != tree.MAP:
        raise _not_editable(shown, source.line_number(node.start))
    if text[node.start : node.start + 1] == "{":
        rest = ", " if node.items else ""
        return f"{text[: node.start + 1]}{_flow(keys[depth:], value)}{rest}{text[node.start + 1 :]}"
    if depth == 0:
        return _appended(text, _block(keys, value, ""))
    first = node.items[0].start
    indent = text[source.starts[source.line_index(first)] : first]
    block = _block(keys[depth:], value, indent)
    return text[:first] + block.removeprefix(indent).replace("\n", line_end(text)) + indent + text[first:]


def _replaced(text: str, node: Node, keys: Sequence[str], value: str, shown: str) -> str:
    """Return the text with another value of a key that is there."""
    is_block = node.kind != tree.TEXT and text[node.start : node.start + 1] not in ("{", "[")
    if is_block or "\n" in text[node.start : node.end]:
        raise _not_editable(shown, text.count("\n", 0, node.start) + 1)
    written = f"{{{_flow(keys, value)}}}" if keys else value
    gap = " " if text[node.start - 1 : node.start] == ":" else ""
    return text[: node.start] + gap + written + text[node.end :]


def _flow(keys: Sequence[str], value: str) -> str:
    for key in reversed(keys[1:]):
        value = f"{{{key}: {value}}}"
    return f"{keys[0]}: {value}"


def _block(keys: Sequence[str], value: str, indent: str) -> str:
    lines = [f"{indent}{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return "\n".join([*lines[:-1], f"{lines[-1]} {value}", ""])


def _appended(text: str, rows: str) -> str:
    gap = line_end(text) if text.lstrip("\ufeff") and not text.endswith("\n") else ""
    return text + gap + rows.replace("\n", line_end(text))


def _not_editable(shown: str, line: int) -> InputError:
    words = f"{shown}:{line}: the present value has several lines, so it was not changed"
    return InputError("config.not-editable", words, hint=f"Change {shown} in an editor")


# The user's own file

_URL = matching("an http or https address", lambda text: text.startswith(("https://", "http://")) and " " not in text)
_USER_KEYS = {
    "notify": section(
        Notify,
        {
            "on": list_of(choice(*NOTICES), f"a list of {', '.join(NOTICES)}"),
            "command": setting_types.ARGUMENTS,
            "webhook": _URL,
            "desktop": BOOLEAN,
        },
    )
}
_FILE = section(dict, _USER_KEYS, owner="your file")


def user_path() -> str:
    """Return where the file is: below `$XDG_CONFIG_HOME`, else below `~/.config`."""
    return os.path.join(user_folders.configuration(), "config.yaml")


def notify() -> Notify | None:
    """Return the user's settings of notices, None without any. InputError `config.invalid` with findings."""
    return configuration.of_file(user_path(), user_path(), CONFIG, read_user_file, f"Fix {user_path()}")


def read_user_file(data: bytes, shown: str) -> tuple[Notify | None, tuple[Finding, ...]]:
    """Return the settings of the user's file, and what is wrong with it. `shown` is its name in messages."""
    node, source = configuration.parsed(data, shown, CONFIG)
    place = Place("", source, kind=CONFIG, key="configuration")
    given = None if node is None else value_types.read_value(_FILE, node, place)
    return (given or {}).get("notify"), source.sorted()
