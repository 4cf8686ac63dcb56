"""Where toolchains keep their data, so that a check with a private home finds them, and which programs changed.

Other programs find theirs only if the configuration passes a variable (`environment`) or the home (`checks.home`).
Programs and packages outside the tree that changed since a run began may be a builder's. Only the times at which files
changed are compared, which no program can set back without changing the machine's clock.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from idumb.domain.plans import shell
from idumb.system.private_folders import MANIFESTS, names_in

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

_SYSTEM = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/sbin"})
"""Folders in which only an administrator installs programs."""
_ABOVE = (*(name for name in MANIFESTS if name != ".git"), ".cargo/config.toml")
"""What tools search for in every folder above the tree, and what decides what they run or load then."""
_MOST = 20
"""A package manager may install hundreds of programs."""

VARIABLES: tuple[str, ...] = (*(variable for variable, _ in BASES.values()), *(row.variable for row in TOOLCHAINS))
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


def changed(
    command: str, search_path: Sequence[str], files: Iterable[str], above: Iterable[str], since: int, base: str = ""
) -> tuple[str, ...]:
    """Return the paths that can decide what `command` runs and that changed after `since`, in nanoseconds.

    These are programs in `search_path`, the packages of its Python and of the folder `base`, programs that the command
    names by a whole path, `files`, and manifests in the folders `above` the tree.
    """
    own = (word for word in shell.read(command).programs if word.startswith("/"))
    manifests = (f"{folder}/{name}" for folder in above for name in _ABOVE)
    paths = itertools.chain(own, _programs(search_path, since), _packages(search_path, base), files, manifests)
    paths_that_changed = dict.fromkeys(path for path in paths if _changed_at(path) > since)
    return tuple(paths_that_changed)[:_MOST]


def _programs(search_path: Sequence[str], since: int) -> Iterator[str]:
    for folder in search_path:
        if folder not in _SYSTEM:
            paths = [f"{folder}/{name}" for name in names_in(folder)]
            yield from [folder] if os.path.islink(folder) else ()
            yield from (p for p in paths if _changed_at(p) > since and os.path.isfile(p) and os.access(p, os.X_OK))


def _packages(search_path: Sequence[str], base: str) -> Iterator[str]:
    """Yield the folders of packages of the interpreters on PATH, and those below `base`."""
    programs = (os.path.realpath(f"{folder}/python3") for folder in search_path if folder not in _SYSTEM)
    prefixes = (os.path.dirname(os.path.dirname(program)) for program in programs if os.path.exists(program))
    for prefix in (*prefixes, *([base] if base else ())):
        names = (name for name in names_in(f"{prefix}/lib") if name.startswith("python3"))
        yield from (f"{prefix}/lib/{name}/site-packages" for name in names)


def _changed_at(path: str) -> int:
    """Return when a path, or what it leads to, last changed, in nanoseconds; 0 if it leads nowhere."""
    try:
        return max(os.lstat(path).st_ctime_ns, os.stat(path).st_ctime_ns)
    except OSError:
        return 0
