"""Parses Python, and finds what a module defines."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from idumb.domain.proof.ledger import Definitions

Found = TypeVar("Found")
_LONGEST = 4 * 1024 * 1024
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Place = tuple[str, int, int]
"""A name, the line on which its definition begins, from 0, and the line after its end."""


def read(text: str, reader: Callable[[ast.Module], Found]) -> Found | None:
    """Return what a reader finds in a text; None if it cannot be parsed, or is nested too deeply."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in the user's strings
            return reader(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions(path: str, data: bytes) -> Definitions | None:
    """Return the texts of what a file defines, by name; None if it is no Python, or cannot be parsed."""
    if not path.endswith((".py", ".pyi")) or len(data) > _LONGEST:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    listed = read(text, lambda tree: [*_of_scope(tree.body, "", wide=False)])
    if listed is None:
        return None
    lines = text.split("\n")
    texts: dict[str, list[str]] = {}
    for name, first, last_line in listed:
        texts.setdefault(name, []).append("\n".join(line.rstrip("\r") for line in lines[first:last_line]))
    return {name: tuple(found) for name, found in texts.items()}


def names(text: str) -> frozenset[str]:
    """Return every name that a module defines or imports, members as `Class.member`; none if it cannot be read."""
    found = read(text, lambda tree: [*_of_scope(tree.body, "", wide=True)])
    return frozenset(name for name, _, _ in found or ())


def _of_scope(body: Iterable[ast.AST], owner: str, *, wide: bool) -> Iterator[Place]:
    """Yield definitions of a module or class, including those under `if`, `try` and `with`.

    With `wide`, imports and the attributes of classes count too.
    """
    for statement in body:
        if not isinstance(statement, ast.stmt):  # a handler of `try`
            yield from _of_scope(getattr(statement, "body", ()), owner, wide=wide)
            continue
        found: list[str] = []
        first = statement.lineno
        if isinstance(statement, ast.Assign | ast.AnnAssign) and (wide or not owner):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found = [name.id for target in targets for name in assigned(target)]
        elif isinstance(statement, ast.Import | ast.ImportFrom) and wide:
            found = [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
        elif isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = [statement.name]
            first = min(node.lineno for node in (statement, *statement.decorator_list))
        yield from ((owner + name, first - 1, statement.end_lineno or first) for name in found)
        if isinstance(statement, ast.ClassDef):
            yield from _of_scope(statement.body, f"{owner}{statement.name}.", wide=wide)
        elif not isinstance(statement, FUNCTIONS):
            for block in ("body", "orelse", "finalbody", "handlers"):
                yield from _of_scope(getattr(statement, block, ()), owner, wide=wide)


def assigned(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that an assignment to `target` defines; in `a[key].b = 1`, that is none."""
    return (each for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def last(node: ast.expr) -> str:
    """Return the last part of a dotted name, also of one that is called."""
    inner = node.func if isinstance(node, ast.Call) else node
    return inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
