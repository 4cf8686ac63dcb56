"""Files that well-known tools leave in a working tree: no task's work, even if the project does not ignore them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from idumb.domain import paths
from idumb.lazy_dataclass import dataclass

# fmt: off
NAMES = (
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
"""A file, or a folder if it ends with `/`; `*` stands for any part of one name."""
_BESIDE = {"target/": "Cargo.toml"}
_INSIDE = {"venv/": "pyvenv.cfg", "env/": "pyvenv.cfg"}
"""A file that must exist next to it, or in it."""
_BY_PEOPLE = r"\.aider(?:ignore|\.conf\.yml|\.model\.(?:settings|metadata)\.\w+)"


def _expression(name: str) -> str:
    parts = re.split(r"(\*|\[.*?\])", name.rstrip("/"))
    pattern = "".join("[^/]*" if part == "*" else part if part.startswith("[") else re.escape(part) for part in parts)
    return f"{pattern}{'(?=/)' if name.endswith('/') else '$'}"


PATTERN = re.compile(
    rf"(?:^|/)(?!{_BY_PEOPLE}(?:/|$))"
    rf"(?:{'|'.join(f'(?P<r{n}>{_expression(name)})' for n, name in enumerate(NAMES))})"
)
"""Finds, from left to right, the names of the table in a path. It says nothing of what must be beside or inside."""


@dataclass(frozen=True, slots=True)
class Match:
    """The file or folder (with `/`) at or above a path that the table names.

    `beside` and `inside` are paths that must exist; "" for none.
    """

    root: str
    beside: str = ""
    inside: str = ""


def matches(path: str) -> Iterator[Match]:
    """Yield what the table names at or above a path, outer folders first."""
    for found in PATTERN.finditer(path):
        name = NAMES[int((found.lastgroup or "r0")[1:])]
        root = path[: found.end()]
        folder = root[: root.rfind("/") + 1]
        beside = f"{folder}{_BESIDE[name]}" if name in _BESIDE else ""
        yield Match(
            f"{root}{'/' if name.endswith('/') else ''}", beside, f"{root}/{_INSIDE[name]}" if name in _INSIDE else ""
        )


def names(path: str) -> bool:
    """Return whether a declared path or glob itself names a file of the table: `src/**` does not, `**/*.pyc` does."""
    return PATTERN.search(path) is not None


def declared(path: str, claims: Iterable[str]) -> bool:
    """Return whether a declared path or glob covers `path` and names a file of the table itself."""
    return any(names(claim) and paths.matches(path, claim) for claim in claims)
