"""The project's own files as the meta tests see them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "agents",
    "app",
    "cli",
    "composition",
    "domain",
    "fake_model",
    "gates",
    "git",
    "markdown",
    "store",
    "system",
    "views",
)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project that git has or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listing.stdout.decode().split("\0")
    return tuple(place for name in names if name and (place := ROOT / name).is_file())


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(place: Path) -> str:
    return place.relative_to(ROOT).as_posix()


@cache
def text(place: Path) -> str:
    return place.read_text(encoding="utf-8")


@cache
def parsed(place: Path) -> ast.Module:
    return ast.parse(text(place), filename=name_of(place))


@cache
def calls(place: Path) -> tuple[tuple[int, str], ...]:
    """Return line and dotted name of every call of a name or an attribute (`x().read_text` is `read_text`)."""
    nodes = (node for node in ast.walk(parsed(place)) if isinstance(node, ast.Call))
    return tuple((node.lineno, dotted(node.func)) for node in nodes)


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            before = dotted(value)
            return f"{before}.{attr}" if before else f".{attr}"
        case _:
            return ""


@cache
def imports(place: Path) -> tuple[tuple[int, str], ...]:
    """Return line and name of every imported module at any depth."""
    return tuple(_imports(parsed(place)))


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where statements have statements; expressions, which are most of the nodes, have none."""


def statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement at any depth, and what holds statements: a tenth of the nodes of `ast.walk`."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _BODIES:
            inner = getattr(node, name, ())
            waiting += inner if isinstance(inner, list) else ()


def _imports(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in statements(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def without_docstrings(code: str) -> str:
    """The code as one text with neither comments nor docstrings, and string lists run together as one command line."""
    module = ast.parse(code)
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value = ast.Constant(value=...)
    return ast.unparse(module).replace("', '", " ")
