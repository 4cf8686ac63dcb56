"""Files that well-known tools leave in a working tree: no task's work, even if the project does not ignore them.

The table is data: a pattern, and what leaves such a file. To add one, add a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ToolFile:
    """`name` is a file, or a folder if it ends with `/`; `*` stands for any part of one name. `tool` leaves it.

    `beside` is a file that must exist next to it, `inside` one that must exist in it. `unless` are names that people
    write.
    """

    name: str
    tool: str
    beside: str = ""
    inside: str = ""
    unless: tuple[str, ...] = ()


# fmt: off
ROWS: tuple[ToolFile, ...] = (
    ToolFile("__pycache__/", "Python: compiled modules"),
    ToolFile("*.pyc", "Python: a compiled module"),
    ToolFile("*.pyo", "Python 2: a compiled module"),
    ToolFile(".pytest_cache/", "pytest: results of the last run"),
    ToolFile(".mypy_cache/", "mypy: types of the last run"),
    ToolFile(".ruff_cache/", "ruff: results of the last run"),
    ToolFile(".pytype/", "pytype: types of the last run"),
    ToolFile(".hypothesis/", "Hypothesis: examples of earlier runs"),
    ToolFile(".coverage", "coverage.py: measured lines"),
    ToolFile(".coverage.*", "coverage.py: measured lines of one process"),
    ToolFile("htmlcov/", "coverage.py: its report"),
    ToolFile(".tox/", "tox: virtual environments"),
    ToolFile(".nox/", "nox: virtual environments"),
    ToolFile(".venv/", "a virtual environment of Python"),
    ToolFile("venv/", "a virtual environment of Python", inside="pyvenv.cfg"),
    ToolFile("env/", "a virtual environment of Python", inside="pyvenv.cfg"),
    ToolFile(".eggs/", "setuptools: downloaded build dependencies"),
    ToolFile("*.egg-info/", "setuptools: metadata of an editable install"),
    ToolFile(".ipynb_checkpoints/", "Jupyter: earlier versions of notebooks"),
    ToolFile("node_modules/", "npm, yarn and pnpm: installed packages"),
    ToolFile(".pnpm-store/", "pnpm: downloaded packages"),
    ToolFile(".next/", "Next.js: built pages"),
    ToolFile(".nuxt/", "Nuxt: built pages"),
    ToolFile(".svelte-kit/", "SvelteKit: built pages"),
    ToolFile(".turbo/", "Turborepo: cached results"),
    ToolFile(".parcel-cache/", "Parcel: cached results"),
    ToolFile(".nyc_output/", "nyc: measured lines"),
    ToolFile(".eslintcache", "ESLint: results of the last run"),
    ToolFile(".stylelintcache", "Stylelint: results of the last run"),
    ToolFile("*.tsbuildinfo", "TypeScript: state of an incremental build"),
    ToolFile("target/", "cargo: built crates", beside="Cargo.toml"),
    ToolFile(".gradle/", "Gradle: cached results"),
    ToolFile(".aider*", "aider: history and caches",
             unless=(".aiderignore", ".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json")),
    ToolFile(".aider*/", "aider: caches"),
    ToolFile(".claude/settings.local.json", "Claude Code: permissions that you gave"),
    ToolFile(".DS_Store", "macOS: how a folder is shown"),
    ToolFile("Thumbs.db", "Windows: previews of a folder"),
    ToolFile(".nfs[0-9a-f]*", "NFS: a deleted file that is still open"),
    ToolFile(".fuse_hidden*", "FUSE: a deleted file that is still open"),
    ToolFile(".*.sw[a-p]", "Vim: a swap file"),
    ToolFile("*~", "editors: the version before the last save"),
    ToolFile(".#*", "Emacs: a lock"),
    ToolFile("#*#", "Emacs: unsaved changes"),
)
# fmt: on


def _expression(row: ToolFile) -> str:
    parts = re.split(r"(\*|\[.*?\])", row.name.rstrip("/"))
    name = "".join("[^/]*" if part == "*" else part if part.startswith("[") else re.escape(part) for part in parts)
    people = "".join(f"(?!{re.escape(other)}(?:/|$))" for other in row.unless)
    return f"{people}{name}{'(?=/)' if row.name.endswith('/') else '$'}"


PATTERN = lazy_pattern.compile(
    "(?:^|/)(?:" + "|".join(f"(?P<r{n}>{_expression(row)})" for n, row in enumerate(ROWS)) + ")"
)
"""Finds, from left to right, the names of the table in a path. It says nothing of `beside` and `inside`."""


@dataclass(frozen=True, slots=True)
class Match:
    """The file or folder (with `/`) at or above a path that a row of the table names."""

    root: str
    row: ToolFile

    @property
    def beside(self) -> str:
        """Return the path that must exist next to it; "" for none."""
        folder = self.root.rstrip("/").rpartition("/")[0]
        return "/".join(filter(None, (folder, self.row.beside))) if self.row.beside else ""

    @property
    def inside(self) -> str:
        """Return the path that must exist in it; "" for none."""
        return f"{self.root}{self.row.inside}" if self.row.inside else ""


def matches(path: str) -> Iterator[Match]:
    """Yield what the table names at or above a path, outer folders first."""
    for found in PATTERN.finditer(path):
        row = ROWS[int((found.lastgroup or "r0")[1:])]
        yield Match(f"{path[: found.end()]}{'/' if row.name.endswith('/') else ''}", row)


def names(path: str) -> bool:
    """Return whether a declared path or glob itself names a file of the table: `src/**` does not, `**/*.pyc` does."""
    return PATTERN.search(path) is not None


def declared(path: str, claims: Iterable[str]) -> bool:
    """Return whether a declared path or glob covers `path` and names a file of the table itself."""
    return any(names(claim) and paths.matches(path, claim) for claim in claims)
