"""Files of well-known tools in a project: what they leave, what decides an installation, and how to install.

A proposal how to install dependencies is a line of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from idumb.domain import paths
from idumb.domain.settings import CheckoutSettings, CheckSettings

# fmt: off
_LEFTOVERS = (
    # Python
    "__pycache__/", "*.pyc", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".coverage",
    ".coverage.*", "htmlcov/", ".tox/", ".nox/", ".venv/", "venv/", "env/", ".eggs/", "*.egg-info/",
    ".ipynb_checkpoints/",
    # JavaScript
    "node_modules/", ".pnpm-store/", ".next/", ".nuxt/", ".svelte-kit/", ".turbo/", ".parcel-cache/", ".nyc_output/",
    ".eslintcache", ".stylelintcache", "*.tsbuildinfo",
    # others
    "target/", ".gradle/", ".aider*", ".aider*/", ".claude/settings.local.json", ".DS_Store", "Thumbs.db",
    ".*.sw[a-p]", "*~", ".#*", "#*#",
)
# fmt: on
"""Files that tools leave in a working tree: a folder if it ends with `/`; `*` stands for any part of one name.

They are no task's work, even if the project does not ignore them.
"""
_BESIDE = {"target/": "Cargo.toml"}
_INSIDE = {"venv/": "pyvenv.cfg", "env/": "pyvenv.cfg"}
"""A file that must exist next to it, or in it."""
_BY_PEOPLE = r"\.aider(?:ignore|\.conf\.yml|\.model\.(?:settings|metadata)\.\w+)"


def _expression(name: str) -> str:
    parts = re.split(r"(\*|\[.*?\])", name.rstrip("/"))
    pattern = "".join("[^/]*" if part == "*" else part if part.startswith("[") else re.escape(part) for part in parts)
    return f"{pattern}{'(?=/)' if name.endswith('/') else '$'}"


LEFTOVER = re.compile(
    rf"(?:^|/)(?!{_BY_PEOPLE}(?:/|$))"
    rf"(?:{'|'.join(f'(?P<r{n}>{_expression(name)})' for n, name in enumerate(_LEFTOVERS))})"
)
"""Finds, from left to right, the names of the table in a path. It says nothing of what must be beside or inside."""


class Match(Struct, frozen=True):
    """The file or folder (with `/`) at or above a path that the table names.

    `beside` and `inside` are paths that must exist; "" for none.
    """

    root: str
    beside: str = ""
    inside: str = ""


def leftovers(path: str) -> Iterator[Match]:
    """Yield what the table names at or above a path, outer folders first."""
    for found in LEFTOVER.finditer(path):
        name = _LEFTOVERS[int((found.lastgroup or "r0")[1:])]
        root = path[: found.end()]
        folder = root[: root.rfind("/") + 1]
        beside = f"{folder}{_BESIDE[name]}" if name in _BESIDE else ""
        yield Match(
            f"{root}{'/' if name.endswith('/') else ''}", beside, f"{root}/{_INSIDE[name]}" if name in _INSIDE else ""
        )


def names_leftover(path: str) -> bool:
    """Return whether a declared path or glob itself names a file of the table: `src/**` does not, `**/*.pyc` does."""
    return LEFTOVER.search(path) is not None


def declares_leftover(path: str, claims: Iterable[str]) -> bool:
    """Return whether a declared path or glob covers `path` and names a file of the table itself."""
    return any(names_leftover(claim) and paths.matches(path, claim) for claim in claims)


_INSTALL_FILES = (
    # JavaScript
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "package.json",
    "pnpm-workspace.yaml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".nvmrc", ".node-version",
    # Python
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "Pipfile", "pylock*.toml", "pyproject.toml", "setup.py",
    "setup.cfg", "requirements*.txt", "requirements*.in", "constraints*.txt", "environment.yml", ".python-version",
    # Go, Rust
    "go.sum", "go.mod", "go.work", "Cargo.lock", "Cargo.toml", "rust-toolchain", "rust-toolchain.toml",
    # Java
    "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile", "libs.versions.toml",
    "gradle-wrapper.properties", "maven-wrapper.properties",
    # others
    "Gemfile.lock", "composer.lock", "mix.lock", "pubspec.lock", "Makefile", "makefile", "GNUmakefile",
    ".tool-versions", "mise.toml", ".mise.toml", "*.prisma", "*.patch",
)  # fmt: skip
"""Files that decide what installing the dependencies gives; `*` stands for any characters.

Manifests count too: they may be newer than their lock file.
"""

_DECIDES = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in _INSTALL_FILES))


def install_files(paths: Iterable[str]) -> list[str]:
    """Return those of the paths whose files decide what an installation gives."""
    return sorted(path for path in paths if _DECIDES.fullmatch(path.rpartition("/")[2]))


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


_VENV, _PIP = "python3 -m venv .venv", ".venv/bin/pip install"
_FILES, _BUNDLE = "-r requirements.txt", "bundle config set --local path vendor/bundle && bundle install"
_DEV = "-r requirements-dev.txt"
_YARN = "YARN_ENABLE_GLOBAL_CACHE=false yarn install --immutable"
"""Yarn's own cache is in the home, which prepared packages would not find again."""
_DEVELOP = r"(?ms)^\[project\.optional-dependencies\]$(?:(?!^\[).)*?^dev *="
_ROWS = (
    _Row(("package.json", "pnpm-lock.yaml"), r'ependencies"', ("pnpm install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "yarn.lock", ".yarnrc.yml"), r'ependencies"', (_YARN,), _MODULES),
    _Row(("package.json", "yarn.lock"), r'ependencies"', ("yarn install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "bun.lock"), r'ependencies"', ("bun install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "bun.lockb"), r'ependencies"', ("bun install --frozen-lockfile",), _MODULES),
    _Row(("package.json", "package-lock.json"), r'ependencies"', ("npm ci",), _MODULES),
    _Row(("package.json", "npm-shrinkwrap.json"), r'ependencies"', ("npm ci",), _MODULES),
    _Row(("pyproject.toml", "uv.lock"), "", ("uv sync --frozen",), _ENVIRONMENT),
    _Row(("pyproject.toml", "poetry.lock"), "", ("POETRY_VIRTUALENVS_IN_PROJECT=true poetry install",), _ENVIRONMENT),
    _Row(("pyproject.toml", "pdm.lock"), "", ("pdm sync",), _ENVIRONMENT),
    _Row(("Pipfile", "Pipfile.lock"), "", ("PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev",), _ENVIRONMENT),
    _Row(("requirements-dev.txt", "requirements.txt"), "", (_VENV, f"{_PIP} {_FILES} {_DEV}"), _ENVIRONMENT),
    _Row(("requirements.txt",), r"(?m)^\s*[\w.-]", (_VENV, f"{_PIP} {_FILES}"), _ENVIRONMENT),
    _Row(("pyproject.toml",), _DEVELOP, (_VENV, f"{_PIP} --editable '.[dev]'"), _ENVIRONMENT),
    _Row(("pyproject.toml",), r"ependencies\b", (_VENV, f"{_PIP} --editable ."), _ENVIRONMENT),
    _Row(("composer.json", "composer.lock"), '"require', ("composer install --no-interaction",), "vendor"),
    _Row(("Gemfile", "Gemfile.lock"), r"(?m)^\s*gem\b", (_BUNDLE,), "vendor/bundle"),
    _Row(("go.mod",), r"(?m)^require\b", ("go mod download",)),
    _Row(("Cargo.toml", "Cargo.lock"), r"dependencies\b", ("cargo fetch --locked",)),
    _Row(("pom.xml",), "<dependency>", ("mvn -q dependency:go-offline",)),
)
"""The first row for a manifest counts; for Python, the first row of all."""

FILES = tuple(dict.fromkeys([*(name for row in _ROWS for name in row.files), _MAKEFILE]))


class Proposal(NamedTuple):
    """What installs dependencies. `folder` is "" if checks can see them anyway."""

    commands: tuple[str, ...]
    folder: str


def manifests(read: Callable[[str], str | None]) -> dict[str, str]:
    """Return the files that name dependencies, with their texts; `read` returns None for a file that is missing."""
    return {name: text for name in FILES if (text := read(name)) is not None}


def proposals(present: Mapping[str, str]) -> tuple[Proposal, ...]:
    """Return how to install the dependencies of a project that has these `manifests`."""
    chosen = tuple(_of_rows(present))
    target = None if chosen else _TARGETS.search(present.get(_MAKEFILE, ""))
    return chosen if target is None else (Proposal((f"make {target[1]}",), ""),)


def _of_rows(present: Mapping[str, str]) -> Iterator[Proposal]:
    taken = set[str]()
    for row in _ROWS:
        key = row.folder or row.files[0]
        if key not in taken and set(row.files) <= set(present) and re.search(row.names, present[row.files[0]]):
            taken.add(key)
            yield Proposal(row.commands, row.folder)


Section = CheckSettings | CheckoutSettings


def how_to_set(name: str, present: Section, change: Mapping[str, Any]) -> str:
    """Return how to give a section of the configuration a change besides everything that it has, as one line of YAML.

    What a change has of a list is added to the list.
    """
    values: dict[str, Any] = {
        key: value if isinstance(value, str) else tuple(dict.fromkeys((*getattr(present, key), *value)))
        for key, value in change.items()
    }
    settings = replace(present, **values)
    usual: dict[str, Any] = asdict(type(settings)())
    pairs = [f"{key}: {_yaml(getattr(settings, key))}" for key in usual if getattr(settings, key) != usual[key]]
    return f"write `{name}: {{{', '.join(pairs)}}}` in .idumb/config.yaml"


def _yaml(value: str | int | Sequence[str]) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"[{', '.join(map(_quoted, value))}]"


def prepare_line(commands: Sequence[str]) -> str:
    """Return the line of the configuration that prepares checks with these commands."""
    return f"prepare: [{', '.join(_quoted(command) for command in commands)}]"


def _quoted(item: str) -> str:
    """Return a command or path as YAML in a list."""
    plain = re.fullmatch(r"[\w./][\w./= :-]*", item) and ": " not in item and not item.endswith(":")
    return item if plain else "'" + item.replace("'", "''") + "'"
