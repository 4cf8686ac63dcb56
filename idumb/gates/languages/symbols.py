"""Finds what a file defines, names and texts: Python with its own parser, others by patterns at the line start.

The patterns expect formatted source: top-level definitions begin in the first column and end before the next line that
is not indented deeper and does not close a bracket. Members count in Python, Go (by receiver) and Java; in other
languages a type stands for its members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb import lazy_pattern
from idumb.domain.proof.symbols import Definitions

_LONGEST = 4 * 1024 * 1024
_BLOCK_COMMENT = lazy_pattern.compile(r"/\*.*?\*/", re.DOTALL)
_CONTINUES = lazy_pattern.compile(r"[)}\]{]|where\b")
_NOT_NAMES = frozenset({"if", "for", "while", "switch", "return", "else", "do", "sizeof", "defined", "new", "catch"})

Place = tuple[str, int, int | None]
"""A name, the line on which its definition begins, from 0, and the line after its end; None if that is unknown."""


def definitions(path: str, data: bytes) -> Definitions | None:
    """Return the texts by name; None if the language is unknown or the file cannot be parsed."""
    listed = places(path, data)
    if listed is None:
        return None
    lines = data.decode("utf-8-sig").split("\n")
    texts: dict[str, list[str]] = {}
    for name, first, last in listed:
        end = _end(lines, first) if last is None else last
        texts.setdefault(name, []).append("\n".join(line.rstrip("\r") for line in lines[first:end]))
    return {name: tuple(found) for name, found in texts.items()}


def _end(lines: Sequence[str], first: int) -> int:
    """Return the line after the last one of a definition that begins on `first`; both count from 0."""
    depth, end = _indentation(lines[first]), first + 1
    for number, line in _following(lines, first):
        if line.strip():
            if _indentation(line) <= depth and not (_indentation(line) == depth and _CONTINUES.match(line.lstrip())):
                break
            end = number + 1
    return end


def _following(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    return ((number, lines[number]) for number in range(first + 1, len(lines)))


def _indentation(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def places(path: str, data: bytes) -> list[Place] | None:
    """Return every definition in the file; None if the language is unknown or the file cannot be parsed."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    reader = _READERS.get(suffix.lower() if dot else "")
    if reader is None or len(data) > _LONGEST:
        return None
    try:
        return reader(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def python_names(text: str) -> frozenset[str]:
    """Return every name that Python source defines or imports, members as `Class.member`; none if it is no Python."""
    return frozenset(name for name, _, _ in _python(text, wide=True) or ())


def _python(text: str, *, wide: bool = False) -> list[Place] | None:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the user's strings
            return list(_of_scope(ast.parse(text).body, "", wide=wide))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _of_scope(body: list[Any], owner: str, *, wide: bool) -> Iterator[Place]:
    """Return definitions of a module or class, including those under `if`, `try` and `with`.

    With `wide`, imports and the attributes of classes count too.
    """
    import ast

    for statement in body:
        place = statement.lineno - 1, statement.end_lineno
        if isinstance(statement, ast.Assign | ast.AnnAssign):  # most statements of many modules
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from ((owner + name, *place) for name in (_names(targets) if wide or not owner else ()))
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            aliases = statement.names if wide else ()
            yield from ((owner + (alias.asname or alias.name).split(".")[0], *place) for alias in aliases)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([statement, *statement.decorator_list], key=lambda node: node.lineno)
            yield owner + statement.name, first.lineno - 1, statement.end_lineno
            if isinstance(statement, ast.ClassDef):
                yield from _of_scope(statement.body, f"{owner}{statement.name}.", wide=wide)
        else:
            blocks = (getattr(statement, name, ()) or () for name in ("body", "orelse", "finalbody", "handlers"))
            for inner in (inner for block in blocks for inner in block):
                below = inner.body if isinstance(inner, ast.ExceptHandler) else [inner]
                yield from _of_scope(below, owner, wide=wide)


def _names(targets: Iterable[Any]) -> Iterator[str]:
    import ast

    for target in targets:
        for node in (target,) if isinstance(target, ast.Name) else ast.walk(target):
            if isinstance(node, ast.Name):
                yield node.id


def _by_lines(*patterns: str) -> Callable[[str], list[Place] | None]:
    """Return every named group `name`, qualified by the group `owner` if present."""
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]

    def reader(text: str) -> list[Place]:
        closed = text.rfind("*/") + 2  # after that, a search from each `/*` would go through the rest of the file
        bare = _BLOCK_COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text[:closed]) + text[closed:]
        return [place for pattern in compiled for place in _matched(pattern, bare)]

    return reader


def _matched(pattern: re.Pattern[str], text: str) -> Iterator[Place]:
    line, counted = 0, 0
    for match in pattern.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        names = match.groupdict()
        if names["name"] not in _NOT_NAMES:
            yield f"{names['owner']}.{names['name']}" if names.get("owner") else names["name"], line, None


_SCRIPT = _by_lines(
    r"^(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?(?:async[ \t]+)?function[ \t]*\*?[ \t]*(?P<name>[\w$]+)",
    r"^(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+)?class[ \t]+(?P<name>[\w$]+)",
    r"^(?:export[ \t]+)?(?:declare[ \t]+)?(?:interface|type|namespace|(?:const[ \t]+)?enum)[ \t]+(?P<name>[\w$]+)",
    r"^(?:export[ \t]+)?(?:declare[ \t]+)?(?:const|let|var)[ \t]+(?!enum\b)(?P<name>[\w$]+)",
)
_GO = _by_lines(
    r"^func[ \t]+\((?:[^()\n]*[ \t])?\*?(?P<owner>\w+)(?:\[[^\]\n]*\])?\)[ \t]*(?P<name>\w+)",
    r"^func[ \t]+(?P<name>\w+)",
    r"^(?:type|var|const)[ \t]+(?P<name>\w+)",
)
_RUST = _by_lines(
    r"^(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:(?:async|const|unsafe|extern|\"[^\"\n]*\")[ \t]+)*fn[ \t]+(?P<name>\w+)",
    r"^(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:unsafe[ \t]+)?(?:struct|enum|trait|union|type|mod|static|const)[ \t]+"
    r"(?!fn\b)(?P<name>\w+)",
    r"^macro_rules![ \t]*(?P<name>\w+)",
)
_C = _by_lines(
    r"^(?!typedef\b|return\b|else\b|#)[A-Za-z_][\w:<>,*& \t]*?[ \t*&](?P<name>[A-Za-z_~][\w:~]*)[ \t]*\([^;{}]*\)"
    r"[^;{}()]*\{",
    r"^(?:typedef[ \t]+)?(?:struct|union|enum(?:[ \t]+class)?|class|namespace)[ \t]+(?P<name>\w+)[^;()]*\{",
    r"^#[ \t]*define[ \t]+(?P<name>\w+)",
    r"^using[ \t]+(?P<name>\w+)[ \t]*=",
)
_JAVA = _by_lines(
    r"^[ \t]*(?:(?:public|protected|private|static|final|abstract|sealed)[ \t]+)*"
    r"(?:class|interface|enum|record|@interface)[ \t]+(?P<name>\w+)",
    r"^[ \t]+(?:(?:public|protected|private|static|final|abstract|synchronized|default)[ \t]+)+"
    r"(?:<[^>\n]*>[ \t]*)?(?:[\w.\[\]<>,?]+[ \t]+)?(?P<name>\w+)[ \t]*\(",
)
_SHELL = _by_lines(
    r"^[ \t]*(?P<name>[\w.-]+)[ \t]*\([ \t]*\)",
    r"^[ \t]*function[ \t]+(?P<name>[\w.-]+)",
)

_READERS: Mapping[str, Callable[[str], list[Place] | None]] = {
    **dict.fromkeys(("py", "pyi"), _python),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), _SCRIPT),
    "go": _GO,
    "rs": _RUST,
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"), _C),
    "java": _JAVA,
    **dict.fromkeys(("sh", "bash"), _SHELL),
}
