"""The line of the configuration that gives checks something, for a configuration that may set `checks` already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import dependency_setup
from idumb.domain.settings import CheckSettings

_LISTS = ("cache", "provide", "share", "prepare")


def adding(present: CheckSettings | None, *changes: Mapping[str, Any], verb: str = "Add") -> str:
    """Return `Add LINE or LINE to .idumb/config.yaml`, with a line for each change, or what to replace by it.

    A change has keys of `checks`; what it has of a list is added to the list. `verb` is "Add" or "add".
    """
    lines = " or ".join(f"`{line(present, change)}`" for change in changes)
    if present is None:
        return f"{verb} {lines} to .idumb/config.yaml"
    replace = "Replace" if verb[0].isupper() else "replace"
    return f"{replace} `checks` in .idumb/config.yaml by {lines}"


def line(present: CheckSettings | None, change: Mapping[str, Any]) -> str:
    """Return `checks` with everything that it has, and with a change, as one line of YAML."""
    settings = present or CheckSettings()
    values: dict[str, Any] = {key: change[key] for key in change if key not in _LISTS}
    for key in _LISTS:
        values[key] = tuple(dict.fromkeys((*getattr(settings, key), *change.get(key, ()))))
    settings = dataclasses.replace(settings, **values)
    default = CheckSettings()
    if settings == dataclasses.replace(default, tree=settings.tree):
        return f"checks: {settings.tree}"
    fields = [(field.name, getattr(settings, field.name)) for field in dataclasses.fields(settings)]
    pairs = [f"{name}: {_yaml(value)}" for name, value in fields if value != getattr(default, name)]
    return f"checks: {{{', '.join(pairs)}}}"


def _yaml(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else f"[{', '.join(map(dependency_setup.quoted, value))}]"
