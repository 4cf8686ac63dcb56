"""Lines of the configuration that give checks something, where the configuration may set the section already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import dependency_setup
from idumb.domain.settings import CheckoutSettings, CheckSettings

Section = CheckSettings | CheckoutSettings


def of_checks(present: CheckSettings, *changes: Mapping[str, Any], verb: str = "Add") -> str:
    """Return `Add LINE or LINE to .idumb/config.yaml`, with a line for each change, or what to replace by it.

    A change has keys of the section `checks`. `verb` is "Add" or "add".
    """
    return _adding("checks", present, changes, verb)


def of_checkout(present: CheckoutSettings, *changes: Mapping[str, Any], verb: str = "Add") -> str:
    """Return the same for the section `checkout`; what a change has of a list is added to the list."""
    return _adding("checkout", present, changes, verb)


def line(name: str, present: Section, change: Mapping[str, Any]) -> str:
    """Return the section `name` with everything that it has, and with a change, as one line of YAML."""
    values: dict[str, Any] = {
        key: value if isinstance(value, str) else tuple(dict.fromkeys((*getattr(present, key), *value)))
        for key, value in change.items()
    }
    settings = dataclasses.replace(present, **values)
    usual: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(settings)}
    pairs = [f"{key}: {_yaml(getattr(settings, key))}" for key in usual if getattr(settings, key) != usual[key]]
    return f"{name}: {{{', '.join(pairs)}}}"


def _adding(name: str, present: Section, changes: Sequence[Mapping[str, Any]], verb: str) -> str:
    lines = " or ".join(f"`{line(name, present, change)}`" for change in changes)
    if present == type(present)():
        return f"{verb} {lines} to .idumb/config.yaml"
    replace = "Replace" if verb[0].isupper() else "replace"
    return f"{replace} `{name}` in .idumb/config.yaml by {lines}"


def _yaml(value: str | int | Sequence[str]) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"[{', '.join(map(dependency_setup.quoted, value))}]"
