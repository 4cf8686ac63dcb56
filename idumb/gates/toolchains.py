"""Where tools keep their data, and how a check with a private home still finds it.

Most tools read the place from a variable. For the others, the folder is linked into the private home.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from idumb.lazy_dataclass import dataclass

BASES: Mapping[str, tuple[str, str]] = {
    "{config}": ("XDG_CONFIG_HOME", ".config"),
    "{data}": ("XDG_DATA_HOME", ".local/share"),
    "{cache}": ("XDG_CACHE_HOME", ".cache"),
    "{state}": ("XDG_STATE_HOME", ".local/state"),
}
"""Prefix of a place, the variable that moves it, and its default below the home."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place of a tool's data.

    - `variable`: tells the tool the place. For "", the first of `places` that exists is linked into the private home.
    - `places`: the defaults below the home, the preferred one first; a prefix of BASES replaces the home.
    - `unless`: a configuration file and its key that sets the same. The variable would override it, so it stays unset.
    """

    variable: str
    places: tuple[str, ...] = ()
    unless: tuple[str, str] | None = None


def _rows(text: str) -> tuple[Location, ...]:
    rows = (line.split() for line in text.strip().splitlines())
    return tuple(Location("" if name == "link" else name, tuple(places)) for name, *places in rows)


_PIP = ("{config}/pip/pip.conf", "Library/Application Support/pip/pip.conf", ".pip/pip.conf")
_GO = ("{config}/go/env", "Library/Application Support/go/env")

LOCATIONS: tuple[Location, ...] = (
    Location("PIP_CONFIG_FILE", _PIP),
    Location("PIP_CACHE_DIR", ("{cache}/pip", "Library/Caches/pip"), (_PIP[0], "cache-dir")),
    Location("GOENV", _GO),
    Location("GOPATH", ("go",), (_GO[0], "GOPATH")),
    Location("GOCACHE", ("{cache}/go-build", "Library/Caches/go-build"), (_GO[0], "GOCACHE")),
    Location("ANDROID_HOME", ("Android/Sdk", "Library/Android/sdk")),
    Location("NPM_CONFIG_CACHE", (".npm",), (".npmrc", "cache")),
    *_rows(
        """
        CARGO_HOME .cargo
        RUSTUP_HOME .rustup
        SCCACHE_DIR {cache}/sccache
        GOMODCACHE
        GOROOT
        GOENV_ROOT .goenv
        PYTHONUSERBASE .local
        PYENV_ROOT .pyenv
        PIPX_HOME {data}/pipx .local/pipx
        UV_CACHE_DIR {cache}/uv
        UV_CONFIG_FILE {config}/uv/uv.toml
        UV_PYTHON_INSTALL_DIR {data}/uv/python
        UV_TOOL_DIR {data}/uv/tools
        POETRY_CACHE_DIR {cache}/pypoetry Library/Caches/pypoetry
        POETRY_CONFIG_DIR {config}/pypoetry
        POETRY_DATA_DIR {data}/pypoetry
        WORKON_HOME {data}/virtualenvs
        PRE_COMMIT_HOME {cache}/pre-commit
        HF_HOME {cache}/huggingface
        TORCH_HOME {cache}/torch
        NPM_CONFIG_USERCONFIG .npmrc
        NPM_CONFIG_DEVDIR {cache}/node-gyp
        YARN_CACHE_FOLDER {cache}/yarn Library/Caches/Yarn
        YARN_GLOBAL_FOLDER .yarn/berry
        PNPM_HOME {data}/pnpm Library/pnpm
        COREPACK_HOME {cache}/node/corepack
        PLAYWRIGHT_BROWSERS_PATH {cache}/ms-playwright Library/Caches/ms-playwright
        CYPRESS_CACHE_FOLDER {cache}/Cypress Library/Caches/Cypress
        PUPPETEER_CACHE_DIR {cache}/puppeteer
        NVM_DIR .nvm {config}/nvm
        FNM_DIR {data}/fnm .fnm
        VOLTA_HOME .volta
        NODENV_ROOT .nodenv
        BUN_INSTALL .bun
        DENO_DIR {cache}/deno Library/Caches/deno
        JAVA_HOME
        SDKMAN_DIR .sdkman
        JENV_ROOT .jenv
        MAVEN_USER_HOME .m2
        GRADLE_USER_HOME .gradle
        COURSIER_CACHE {cache}/coursier/v1 Library/Caches/Coursier/v1
        ANDROID_SDK_ROOT
        ANDROID_USER_HOME .android
        MISE_CACHE_DIR {cache}/mise Library/Caches/mise
        MISE_CONFIG_DIR {config}/mise
        MISE_DATA_DIR {data}/mise
        MISE_STATE_DIR {state}/mise
        ASDF_DATA_DIR .asdf
        ASDF_CONFIG_FILE .asdfrc
        RBENV_ROOT .rbenv
        GEM_HOME
        GEMRC .gemrc
        BUNDLE_USER_HOME .bundle
        COMPOSER_HOME {config}/composer .composer
        COMPOSER_CACHE_DIR {cache}/composer
        DOTNET_ROOT
        NUGET_PACKAGES .nuget/packages
        CCACHE_DIR .ccache {cache}/ccache Library/Caches/ccache
        CONAN_HOME .conan2
        VCPKG_ROOT
        GHCUP_INSTALL_BASE_PREFIX
        STACK_ROOT .stack
        CABAL_DIR .cabal
        OPAMROOT .opam
        ELAN_HOME .elan
        JULIA_DEPOT_PATH
        MIX_HOME .mix
        HEX_HOME .hex
        PUB_CACHE .pub-cache
        ZIG_GLOBAL_CACHE_DIR {cache}/zig
        link .gem
        link .local/share/gem
        link .ghcup
        link .ivy2
        link .julia
        link .m2
        link .mavenrc
        link .nuget
        link .sbt
        link .tool-versions
        link .yarnrc
        link .yarnrc.yml
        """
    ),
)

TRUSTED = "MISE_TRUSTED_CONFIG_PATHS"
"""mise trusts configuration files by their path, and the tree in which a check runs has another one."""

_CACHES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "PIP_CACHE_DIR", "GOCACHE", "GOMODCACHE", "NPM_CONFIG_CACHE", "NPM_CONFIG_DEVDIR", "SCCACHE_DIR",
            "UV_CACHE_DIR", "POETRY_CACHE_DIR", "PRE_COMMIT_HOME", "TORCH_HOME", "YARN_CACHE_FOLDER", "COREPACK_HOME",
            "DENO_DIR", "COURSIER_CACHE", "MISE_CACHE_DIR", "COMPOSER_CACHE_DIR", "NUGET_PACKAGES", "CCACHE_DIR",
            "PUB_CACHE", "ZIG_GLOBAL_CACHE_DIR",
        ),
        ("",),
    ),
    "CARGO_HOME": ("registry", "git"),
    "GOPATH": ("pkg",),
    "GRADLE_USER_HOME": ("caches", "daemon", "native", "notifications", "workers"),
    "HF_HOME": ("hub", "datasets", "modules"),
    "MAVEN_USER_HOME": ("repository",),
    "YARN_GLOBAL_FOLDER": ("cache", "metadata"),
    "PNPM_HOME": ("store",),
    "CABAL_DIR": ("packages", "store"),
    "STACK_ROOT": ("pantry",),
    ".ivy2": ("cache",),
    ".julia": ("compiled", "logs", "scratchspaces"),
    ".m2": ("repository",),
    ".nuget": ("packages",),
    ".sbt": ("boot",),
}  # fmt: skip
"""What toolchains download or compile: variable, or path of a link in the private home, and folders below its place.

Programs on PATH, such as `~/.cargo/bin`, and configuration are no caches.
"""

_ALIASES = ("NPM_CONFIG_",)
"""Prefixes of variables that the tool also reads in lower case."""

VARIABLES: tuple[str, ...] = (
    *(variable for variable, _ in BASES.values()),
    *(row.variable for row in LOCATIONS if row.variable),
    *(row.variable.lower() for row in LOCATIONS if row.variable.startswith(_ALIASES)),
)
"""The variables of the user's environment that decide where tools look."""


def place(name: str, home: str, environment: Mapping[str, str]) -> str:
    """Return the absolute path of a place of `Location.places`."""
    for prefix, (variable, default) in BASES.items():
        if name.startswith(prefix):
            base = environment.get(variable, "")
            return (base if base.startswith("/") else f"{home}/{default}") + name[len(prefix) :]
    return f"{home}/{name}"


def locations(
    environment: Mapping[str, str],
    home: str,
    *,
    outside: Callable[[str], bool],
    exists: Callable[[str], bool],
    read: Callable[[str], str],
) -> Iterator[tuple[str, str, str]]:
    """Yield variable, path below the home, and value of each location; variable or path is "".

    `environment` is the user's. `read` returns the text of a configuration file, "" without one. Values and folders
    that are not `outside` the repository are omitted, because a builder may have written them.
    """
    for row in LOCATIONS:
        if row.variable:
            value = _value_of_user(row.variable, environment, outside) or _default(
                row, environment, home, outside=outside, exists=exists, read=read
            )
            if value:
                yield row.variable, "", value
        else:
            path = place(row.places[0], home, environment)
            if exists(path) and outside(path):
                yield "", row.places[0], path


def caches(places: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders of `places` that hold caches, whether they exist or not."""
    for name, path in places.items():
        for folder in _CACHES.get(name, ()):
            yield f"{path}/{folder}".rstrip("/")


def _value_of_user(variable: str, environment: Mapping[str, str], outside: Callable[[str], bool]) -> str:
    value = environment.get(variable, "")
    if not value and variable.startswith(_ALIASES):
        value = environment.get(variable.lower(), "")
    return ":".join(each for each in value.split(":") if each.startswith("/") and outside(each))


def _default(
    row: Location,
    environment: Mapping[str, str],
    home: str,
    *,
    outside: Callable[[str], bool],
    exists: Callable[[str], bool],
    read: Callable[[str], str],
) -> str:
    if row.unless is not None:
        file, key = row.unless
        if re.search(rf"^\s*{key}\s*=", read(place(file, home, environment)), re.MULTILINE):
            return ""
    paths = (place(name, home, environment) for name in row.places)
    return next((path for path in paths if exists(path) and outside(path)), "")


CONFIGURATION_FILES: tuple[str, ...] = (
    ".cargo/config.toml",
    ".cargo/config",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    *_GO,
    ".m2/settings.xml",
    ".mavenrc",
    ".gradle/init.gradle",
    ".gradle/init.d",
    ".gradle/gradle.properties",
    ".julia/config/startup.jl",
    *_PIP,
    "{config}/uv/uv.toml",
    "{config}/pypoetry/config.toml",
    ".bundle/config",
    ".gemrc",
    ".asdfrc",
    ".tool-versions",
    "{config}/mise/config.toml",
    ".pyenv/version",
    ".gitconfig",
    "{config}/git/config",
)
"""Files below the home that decide which programs and packages a tool uses."""

SYSTEM_FILES: tuple[str, ...] = ("/etc/gitconfig", "/etc/pip.conf", "/etc/npmrc", "/etc/mavenrc")

_FILE_BELOW: Mapping[str, tuple[str, ...]] = {
    "CARGO_HOME": ("config.toml", "config"),
    "MAVEN_USER_HOME": ("settings.xml",),
    "GRADLE_USER_HOME": ("init.gradle", "init.d", "gradle.properties"),
    "RUSTUP_HOME": ("settings.toml",),
    **dict.fromkeys(("PYENV_ROOT", "NODENV_ROOT", "RBENV_ROOT", "GOENV_ROOT", "JENV_ROOT"), ("version",)),
    "MISE_CONFIG_DIR": ("config.toml",),
    "BUNDLE_USER_HOME": ("config",),
    "POETRY_CONFIG_DIR": ("config.toml",),
}

_FILES = ("NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "GOENV", "UV_CONFIG_FILE", "GEMRC", "ASDF_CONFIG_FILE")


def configuration_files(environment: Mapping[str, str], home: str, kept: Mapping[str, str]) -> Iterable[str]:
    """Return the configuration files of tools, whether they exist or not. `kept` has the values of variables."""
    files = [place(name, home, environment) for name in CONFIGURATION_FILES]
    files += [
        f"{kept[variable]}/{name}" for variable, names in _FILE_BELOW.items() for name in names if variable in kept
    ]
    files += [kept[variable] for variable in _FILES if variable in kept]
    git = environment.get("GIT_CONFIG_GLOBAL", "")
    return dict.fromkeys((*files, *([git] if git.startswith("/") else []), *SYSTEM_FILES))
