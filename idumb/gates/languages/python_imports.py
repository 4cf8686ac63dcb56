"""What Python files import, and the files of the same tree that they mean."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from idumb.gates.languages import python_source


class Import(NamedTuple):
    """`module` is the dotted name, with the dots of a relative one; `name` what `from` takes. `line` counts from 1.

    `runs`: the import runs when the file is imported, so that it can close a cycle.
    """

    module: str
    name: str
    line: int
    runs: bool


def of_tree(tree: ast.AST) -> list[Import]:
    """Return the imports of a module."""
    return [*_below(tree, runs=True)]


def _below(node: ast.AST, *, runs: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(each.name, "", child.lineno, runs) for each in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = "." * child.level + (child.module or "")
            yield from (Import(module, each.name, child.lineno, runs) for each in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (each for part in child.orelse for each in _below(part, runs=runs))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _below(child, runs=runs and not isinstance(child, python_source.FUNCTIONS))


def file_of(path: str, one: Import, exists: Callable[[str], bool]) -> str | None:
    """Return the file of the tree that an import in `path` means; None if it is a package from elsewhere."""
    name = one.module.lstrip(".")
    level = len(one.module) - len(name)
    folders = path.split("/")[:-1]
    if level > len(folders) + 1:
        return None
    roots = ["/".join(folders[: len(folders) - level + 1])] if level else _roots(folders, exists)
    for root in roots:
        place = "/".join(filter(None, (root, *name.split("."))))
        inner = "/".join(filter(None, (place, one.name)))
        for base in dict.fromkeys((inner, place) if one.name else (place,)):
            for candidate in (f"{base}.py", f"{base}/__init__.py"):
                if exists(candidate):
                    return candidate
    return None


def _roots(folders: list[str], exists: Callable[[str], bool]) -> list[str]:
    """Return where absolute imports begin: the folder above the file's outermost package, the top, and `src`."""
    depth = len(folders)
    while depth and exists("/".join((*folders[:depth], "__init__.py"))):
        depth -= 1
    return list(dict.fromkeys(("/".join(folders[:depth]), "", "src")))
