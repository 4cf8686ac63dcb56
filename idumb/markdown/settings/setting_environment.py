"""Settings that variables such as `IDUMB_RUN_MAX_ATTEMPTS`, and `--set`, override, by the one table of settings.

What concerns consent or trust has no variable: which programs run, what they may do, and who judges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain.errors import InputError, UsageError
from idumb.domain.finding import did_you_mean
from idumb.domain.settings import Settings
from idumb.markdown.settings import configuration, setting_values
from idumb.markdown.syntax.record import NULLS, Key
from idumb.system.processes import child_process

_SECTIONS = frozenset({"ask", "breaker", "git", "retry", "run", "snapshot"})
_TRUSTED = frozenset({"git.hooks", "git.network", "run.on_deviation"})
Names = tuple[str, ...]


def leaves(keys: Mapping[str, Key], above: Names = ()) -> Iterator[tuple[Names, Key]]:
    """Yield the names of each setting, and its row."""
    for name, key in keys.items():
        if key.keys:
            yield from leaves(key.keys, (*above, name))
        else:
            yield (*above, name), key


def choose(name: str, value: str) -> None:
    """Let a value of the command line override variable and file, as long as this process lives.

    UsageError for a setting that is unknown or cannot be overridden, and for a value that it does not accept.
    """
    rows = {".".join(names): names for names, _ in leaves(configuration.KEYS)}
    if name not in rows:
        near = did_you_mean(name, rows, "idumb config list --all names them")
        raise UsageError(
            "config.unknown-setting", f"There is no setting {name}; {near}", hint="idumb config list --all"
        )
    try:
        _require_free(rows[name], f"--set {name}", f"idumb config explain {name}")
        _read(rows[name], value, f"--set {name}", f"idumb config explain {name}")
    except InputError as wrong:
        raise UsageError("config.variable", wrong.message, hint=wrong.step) from wrong
    child_process.set_variable(_variable(rows[name]), value)


def _variable(names: Names) -> str:
    return f"IDUMB_{'_'.join(names)}".replace("-", "_").upper()


def _require_free(names: Names, given: str, hint: str) -> None:
    """Refuse to override a setting that consent covers."""
    if names[0] not in _SECTIONS or ".".join(names) in _TRUSTED:
        words = f"{given} is refused: consent covers {'.'.join(names)}, so only {configuration.PATH} sets it."
        raise InputError("config.variable", words, hint=hint)


def given() -> dict[Names, tuple[str, str]]:
    """Return variable and value of each setting that has one now. InputError `config.variable` if it may have none.

    A variable without a value says nothing, like a key without one in a file.
    """
    rows = {_variable(names): names for names, _ in leaves(configuration.KEYS)}
    values = child_process.environment(rows)
    for variable in values:
        _require_free(rows[variable], variable, f"unset {variable}")
    return {rows[name]: (name, value) for name, value in values.items() if value.strip() not in NULLS}


def load(root: str) -> Settings:
    """Return the settings of the repository at `root` with those of variables. Raises InputError with findings."""
    chosen = configuration.load(root)
    for names, (variable, value) in given().items():
        chosen = _with(chosen, _read(names, value, variable, f"Correct or unset {variable}"), names)
    return chosen


def _read(names: Names, value: str, given: str, hint: str) -> Settings:
    """Return settings of which one has this value. InputError `config.variable` if the setting does not accept it."""
    lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(names)]
    read, findings = configuration.read(f"{chr(10).join(lines)} {value}".encode(), given)
    if read is None:
        raise setting_values.rejected("config.variable", findings, hint, given)
    return read


def _with(whole: Any, other: Any, names: Names) -> Any:
    """Return a value in which the part with these names is that of the other one."""
    name, *below = names
    if isinstance(whole, Mapping):
        return {**whole, name: _with(whole.get(name, {}), other[name], tuple(below)) if below else other[name]}
    part = getattr(other, name)
    return dataclasses.replace(whole, **{name: _with(getattr(whole, name), part, tuple(below)) if below else part})
