"""Settings that variables such as `IDUMB_RUN_MAX_ATTEMPTS` override, by the one table of settings.

What concerns consent or trust has no variable: which programs run, what they may do, and who judges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain.errors import InputError
from idumb.domain.settings import Settings
from idumb.markdown.settings import configuration, setting_values
from idumb.markdown.syntax.record import Key
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


def given() -> dict[Names, tuple[str, str]]:
    """Return variable and value of each setting that has one now. InputError `config.variable` if it may have none."""
    rows = {f"IDUMB_{'_'.join(names)}".replace("-", "_").upper(): names for names, _ in leaves(configuration.KEYS)}
    values = child_process.environment(rows)
    for variable in values:
        names = rows[variable]
        if names[0] not in _SECTIONS or ".".join(names) in _TRUSTED:
            words = f"{variable} is refused: consent covers {'.'.join(names)}, so only {configuration.PATH} sets it."
            raise InputError("config.variable", words, hint=f"unset {variable}")
    return {rows[variable]: (variable, value) for variable, value in values.items()}


def load(root: str) -> Settings:
    """Return the settings of the repository at `root` with those of variables. Raises InputError with findings."""
    chosen = configuration.load(root)
    for names, (variable, value) in given().items():
        lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(names)]
        read, findings = configuration.read(f"{chr(10).join(lines)} {value}".encode(), variable)
        if read is None:
            raise setting_values.rejected("config.variable", findings, f"Correct or unset {variable}")
        chosen = _with(chosen, read, names)
    return chosen


def _with(whole: Any, other: Any, names: Names) -> Any:
    """Return a value in which the part with these names is that of the other one."""
    name, *below = names
    if isinstance(whole, Mapping):
        return {**whole, name: _with(whole.get(name, {}), other[name], tuple(below)) if below else other[name]}
    part = getattr(other, name)
    return dataclasses.replace(whole, **{name: _with(getattr(whole, name), part, tuple(below)) if below else part})
