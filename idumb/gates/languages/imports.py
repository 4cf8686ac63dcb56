"""What source files import, and the files of the same tree that they mean: Python, JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from idumb import lazy_pattern

SCRIPTS = ("ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs")
SUFFIXES = ("py", *SCRIPTS)


class Import(NamedTuple):
    """`module` is the dotted name or the specifier, relative ones with their dots; `name` what `from` takes from it.

    In JavaScript and TypeScript, `name` has all names in braces, with commas.

    `runs`: the import runs when the file is imported, so that it can close a cycle. `line` counts from 1.
    """

    module: str
    name: str
    line: int
    runs: bool


def of_text(path: str, text: str) -> list[Import] | None:
    """Return the imports of a file; None if it cannot be parsed."""
    return _of_python(text) if path.endswith(".py") else list(_of_script(text))


def _of_python(text: str) -> list[Import] | None:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the user's strings
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

    def visit(node: ast.AST, *, runs: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(each.name, "", child.lineno, runs) for each in child.names)
            elif isinstance(child, ast.ImportFrom):
                module = "." * child.level + (child.module or "")
                yield from (Import(module, each.name, child.lineno, runs) for each in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from (each for part in child.orelse for each in visit(part, runs=runs))
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from visit(child, runs=runs and not lazy)

    return list(visit(tree, runs=True))


_SCRIPT = lazy_pattern.compile(
    r"^(?:import|export)\b(?![ \t]*(?:type\b|\())(?:(?P<clause>[^'\";]*?)\bfrom\b)?"
    r"[ \t\n]*['\"](?P<from>[^'\"\n]+)['\"]"
    r"|^(?:const|let|var)\b[^=;\n]*=[ \t]*require\([ \t]*['\"](?P<require>[^'\"\n]+)['\"]",
    re.MULTILINE,
)


def _of_script(text: str) -> Iterator[Import]:
    for match in _SCRIPT.finditer(text):
        named = re.fullmatch(r"\s*\{([^{}]*)\}\s*", match["clause"] or "")
        names = "" if named is None or match[0].startswith("export") else named[1]
        yield Import(match["from"] or match["require"], names, text.count("\n", 0, match.start()) + 1, runs=True)


def only_types(one: Import, target: str) -> bool:
    """Return whether TypeScript drops an import, because each name is a type in the text of its file."""
    names = [name.removeprefix("type ") for name in map(str.strip, one.name.split(",")) if name]
    plain = (re.escape(name.partition(" as ")[0].strip()) for name in names)
    declared = r"^export[ \t]+(?:declare[ \t]+)?(?:interface|type)[ \t]+{}\b"
    return bool(names) and all(re.search(declared.format(name), target, re.MULTILINE) for name in plain)


def file_of(path: str, one: Import, exists: Callable[[str], bool]) -> str | None:
    """Return the file of the tree that an import in `path` means; None if it is a package from elsewhere."""
    return _python_file(path, one, exists) if path.endswith(".py") else _script_file(path, one.module, exists)


def _python_file(path: str, one: Import, exists: Callable[[str], bool]) -> str | None:
    name = one.module.lstrip(".")
    level = len(one.module) - len(name)
    folders = path.split("/")[:-1]
    if level > len(folders) + 1:
        return None
    roots = ["/".join(folders[: len(folders) - level + 1])] if level else _roots(folders, exists)
    for root in roots:
        place = "/".join(filter(None, (root, *name.split(".")))) if name else root
        inner = f"{place}/{one.name}" if one.name and place else one.name
        for candidate in (f"{inner}.py", f"{inner}/__init__.py") if one.name else ():
            if exists(candidate):
                return candidate
        for candidate in (f"{place}.py", f"{place}/__init__.py"):
            if exists(candidate):
                return candidate
    return None


def _roots(folders: list[str], exists: Callable[[str], bool]) -> list[str]:
    """Return where absolute imports begin: the folder above the file's outermost package, the top, and `src`."""
    depth = len(folders)
    while depth and exists("/".join((*folders[:depth], "__init__.py"))):
        depth -= 1
    return list(dict.fromkeys(("/".join(folders[:depth]), "", "src")))


def _script_file(path: str, specifier: str, exists: Callable[[str], bool]) -> str | None:
    if not specifier.startswith("."):
        return None
    parts = path.split("/")[:-1]
    for part in specifier.split("/"):
        if part == ".." and not parts:
            return None
        parts = parts[:-1] if part == ".." else parts if part in (".", "") else [*parts, part]
    place = "/".join(parts)
    bare = re.sub(r"\.[cm]?jsx?$", "", place)
    files = [f"{each}.{suffix}" for each in (place, bare) for suffix in SCRIPTS]
    candidates = (place, *files, *(f"{place}/index.{suffix}" for suffix in SCRIPTS))
    return next((each for each in candidates if each.endswith(SCRIPTS) and exists(each)), None)
