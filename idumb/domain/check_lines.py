"""Lines of the configuration that give checks something, such as what installs the dependencies of a project."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
    return f"[{', '.join(map(quoted, value))}]"


DEPENDENCIES = ("node_modules", ".venv", "venv", "vendor")
"""Folders into which programs install dependencies of a project."""

_MODULES, _ENVIRONMENT = "node_modules", ".venv"
_MAKEFILE = "Makefile"
_TARGETS = re.compile(r"^(deps|install-deps|dependencies|bootstrap|setup|vendor)\s*:(?!=)", re.MULTILINE)


class _Row(NamedTuple):
    """With these `files`, if the first of them `names` dependencies, `commands` install them into `folder`.

    Without a folder, they are installed in a cache of the user, which checks can see anyway.
    """

    files: tuple[str, ...]
    names: str
    commands: tuple[str, ...]
    folder: str = ""


_VENV = "python3 -m venv .venv"
_ROWS = (
    _Row(("package.json", "pnpm-lock.yaml"), r'ependencies"', ("pnpm install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "yarn.lock", ".yarnrc.yml"), r'ependencies"', ("yarn install --immutable",), _MODULES),
    _Row(("package.json", "yarn.lock"), r'ependencies"', ("yarn install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "bun.lock"), r'ependencies"', ("bun install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "package-lock.json"), r'ependencies"', ("npm ci",), _MODULES),
    _Row(("package.json", "npm-shrinkwrap.json"), r'ependencies"', ("npm ci",), _MODULES),
    _Row(("pyproject.toml", "uv.lock"), "", ("uv sync --frozen",), _ENVIRONMENT),
    _Row(("pyproject.toml", "poetry.lock"), "", ("POETRY_VIRTUALENVS_IN_PROJECT=true poetry install",), _ENVIRONMENT),
    _Row(("requirements.txt",), r"(?m)^\s*[\w.-]", (_VENV, ".venv/bin/pip install -r requirements.txt"), _ENVIRONMENT),
    _Row(("pyproject.toml",), r"ependencies\b", (_VENV, ".venv/bin/pip install --editable ."), _ENVIRONMENT),
    _Row(("go.mod",), r"(?m)^require\b", ("go mod download",)),
    _Row(("Cargo.toml", "Cargo.lock"), r"dependencies\b", ("cargo fetch --locked",)),
    _Row(("pom.xml",), "<dependency>", ("mvn -q dependency:go-offline",)),
)
"""The first row for a manifest counts; for Python, the first row of all."""

FOLDERS = frozenset({_MODULES, _ENVIRONMENT})
FILES = tuple(dict.fromkeys([*(name for row in _ROWS for name in row.files), _MAKEFILE]))


class Proposal(NamedTuple):
    """What installs the dependencies that `manifest` names. `folder` is "" if checks can see them anyway."""

    manifest: str
    commands: tuple[str, ...]
    folder: str


def proposals(present: Collection[str], read: Callable[[str], str]) -> tuple[Proposal, ...]:
    """Return how to install the dependencies of a project that has the files `present`, some of FILES."""
    chosen = tuple(_of_rows(present, read))
    target = _TARGETS.search(read(_MAKEFILE)) if _MAKEFILE in present and not chosen else None
    return chosen if target is None else (Proposal(_MAKEFILE, (f"make {target[1]}",), ""),)


def _of_rows(present: Collection[str], read: Callable[[str], str]) -> Iterator[Proposal]:
    taken = set[str]()
    for row in _ROWS:
        key = row.folder or row.files[0]
        if key not in taken and set(row.files) <= set(present) and re.search(row.names, read(row.files[0])):
            taken.add(key)
            yield Proposal(row.files[0], row.commands, row.folder)


def preparing(commands: Sequence[str]) -> str:
    """Return the line of the configuration that prepares checks with these commands."""
    return f"prepare: [{', '.join(quoted(command) for command in commands)}]"


def quoted(item: str) -> str:
    """Return a command or path as YAML in a list."""
    plain = re.fullmatch(r"[\w./][\w./= :-]*", item) and ": " not in item and not item.endswith(":")
    return item if plain else "'" + item.replace("'", "''") + "'"
