"""Where toolchains keep their data, so that a check with a private home still finds them.

Other programs find theirs only if the configuration passes a variable (`environment`) or the home (`checks.home`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

BASES: Mapping[str, tuple[str, str]] = {
    "{cache}": ("XDG_CACHE_HOME", ".cache"),
    "{data}": ("XDG_DATA_HOME", ".local/share"),
}
"""Prefix of a place, the variable that moves it, and its default below the home."""


class Toolchain(NamedTuple):
    """A variable that tells a tool where its data is.

    `places` are the defaults below the home, the preferred one first; a prefix of BASES replaces the home. `caches` are
    the folders below the data that hold what the tool downloads or compiles, "" for all of it. `configuration` are
    files below that decide which programs it runs.
    """

    variable: str
    places: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    configuration: tuple[str, ...] = ()


_ALL = ("",)
TOOLCHAINS: tuple[Toolchain, ...] = (
    Toolchain("CARGO_HOME", (".cargo",), ("registry", "git"), ("config.toml", "config")),
    Toolchain("RUSTUP_HOME", (".rustup",), (), ("settings.toml",)),
    Toolchain("GOPATH", ("go",), ("pkg",)),
    Toolchain("GOMODCACHE", (), _ALL),
    Toolchain("GOCACHE", ("{cache}/go-build", "Library/Caches/go-build"), _ALL),
    Toolchain("GOROOT"),
    Toolchain("JAVA_HOME"),
    Toolchain(
        "GRADLE_USER_HOME",
        (".gradle",),
        ("caches", "daemon", "native", "notifications", "workers"),
        ("init.gradle", "init.d", "gradle.properties"),
    ),
    Toolchain("PYTHONUSERBASE", (".local",)),
    Toolchain("PYENV_ROOT", (".pyenv",), (), ("version",)),
    Toolchain("UV_CACHE_DIR", ("{cache}/uv",), _ALL),
    Toolchain("UV_PYTHON_INSTALL_DIR", ("{data}/uv/python",)),
    Toolchain("PIP_CACHE_DIR", ("{cache}/pip", "Library/Caches/pip"), _ALL),
    Toolchain("NVM_DIR", (".nvm",), (), ("alias",)),
    Toolchain("VOLTA_HOME", (".volta",)),
    Toolchain("NPM_CONFIG_CACHE", (".npm",), _ALL),
    Toolchain("PLAYWRIGHT_BROWSERS_PATH", ("{cache}/ms-playwright", "Library/Caches/ms-playwright")),
    Toolchain("RBENV_ROOT", (".rbenv",), (), ("version",)),
    Toolchain("ASDF_DATA_DIR", (".asdf",)),
    Toolchain("MISE_DATA_DIR", ("{data}/mise",)),
)

TRUSTED = "MISE_TRUSTED_CONFIG_PATHS"
"""mise trusts configuration files by their path, and the tree in which a check runs has another one."""

VARIABLES: tuple[str, ...] = (
    *(variable for variable, _ in BASES.values()),
    *(row.variable for row in TOOLCHAINS),
)
"""The variables of the user's environment that decide where toolchains are."""


def locations(
    environment: Mapping[str, str], home: str, *, outside: Callable[[str], bool], exists: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield variable and value of each toolchain that the user has.

    `environment` is the user's. Folders that are not `outside` the repository are omitted, because a builder may have
    written them.
    """
    for row in TOOLCHAINS:
        values = environment.get(row.variable, "").split(":")
        chosen = ":".join(value for value in values if value.startswith("/") and outside(value))
        defaults = (_place(name, home, environment) for name in row.places)
        value = chosen or next((path for path in defaults if exists(path) and outside(path)), "")
        if value:
            yield row.variable, value


def caches(places: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders that checks may fill, of toolchains at `places`, whether they exist or not."""
    for row in TOOLCHAINS:
        if row.variable in places:
            yield from (f"{places[row.variable]}/{folder}".rstrip("/") for folder in row.caches)


def configuration(places: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that decide which programs the toolchains at `places` run, whether they exist or not."""
    for row in TOOLCHAINS:
        if row.variable in places:
            yield from (f"{places[row.variable]}/{name}" for name in row.configuration)


def _place(name: str, home: str, environment: Mapping[str, str]) -> str:
    for prefix, (variable, default) in BASES.items():
        if name.startswith(prefix):
            base = environment.get(variable, "")
            return (base if base.startswith("/") else f"{home}/{default}") + name[len(prefix) :]
    return f"{home}/{name}"
