"""Lines of the configuration that give checks something, where the configuration may set the section already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import dependency_setup
from idumb.domain.settings import CheckoutSettings, CheckSettings

Section = CheckSettings | CheckoutSettings


def adding(name: str, present: Section, change: Mapping[str, Any]) -> str:
    """Return `add LINE to .idumb/config.yaml`, or what to replace by it, if the section `name` is there.

    What a change has of a list is added to the list.
    """
    text = line(name, present, change)
    if present == type(present)():
        return f"add `{text}` to .idumb/config.yaml"
    return f"replace `{name}` in .idumb/config.yaml by `{text}`"


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


def _yaml(value: str | int | Sequence[str]) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"[{', '.join(map(dependency_setup.quoted, value))}]"
