"""The files of a project that decide what installing its dependencies gives."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAMES = (
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
    ".tool-versions", "mise.toml", ".mise.toml",
)  # fmt: skip
"""Names of files; `*` stands for any characters. Manifests count too: they may be newer than their lock file."""

_PATTERN = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in NAMES))


def among(paths: Iterable[str]) -> list[str]:
    """Return those of the paths whose files decide what an installation gives."""
    return sorted(path for path in paths if _PATTERN.fullmatch(path.rpartition("/")[2]))
