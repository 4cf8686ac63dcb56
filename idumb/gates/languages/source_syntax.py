"""Errors of syntax in languages that Python cannot read: tree-sitter's grammars (the extra `syntax`), and bash itself.

A grammar does not know every valid text. So an error counts only away from what that grammar is known to misread, and
in C only if the file parsed before: a macro may hide anything.
"""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from idumb import lazy_pattern
from idumb.domain.proof.deadline import OutOfTimeError
from idumb.system.processes import child_process

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_LONGEST = 512 * 1024
_TIMEOUT = 10.0
"""Seconds for one file."""
_PIECE = 64 * 1024
_SHOWN = 40
"""Characters of the text at an error."""

Found = tuple[int, str]
"""The line of an error, from 1, and what is wrong."""


class Grammar(NamedTuple):
    """`load` returns the grammar of the language `name`.

    `unknown` matches a text that the grammar cannot judge, `doubtful` the lines of an error that may be none.
    """

    name: str
    load: Callable[[], object]
    unknown: re.Pattern[str] | None = None
    doubtful: re.Pattern[str] | None = None


def _c() -> object:
    import tree_sitter_c

    return tree_sitter_c.language()


def _go() -> object:
    import tree_sitter_go

    return tree_sitter_go.language()


def _java() -> object:
    import tree_sitter_java

    return tree_sitter_java.language()


def _javascript() -> object:
    import tree_sitter_javascript

    return tree_sitter_javascript.language()


def _rust() -> object:
    import tree_sitter_rust

    return tree_sitter_rust.language()


def _typescript() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_typescript()


def _tsx() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_tsx()


_MACRO = lazy_pattern.compile(r"\b[A-Z][A-Z0-9_]{2,}\b|\b_\w+|#|va_arg")
_SCRIPT = lazy_pattern.compile(r"\busing\b|\bassert\s*\{|\bimport\s+(?:defer|source)\b|\bexport\s+default\s+from\b")
_TYPED = lazy_pattern.compile(
    rf"{_SCRIPT.pattern}|\bimport\(|\bexport\s+(?:type\s*\*|default\s+abstract\b)|[<,]\s*(?:in|out)\s+\w"
)
_TOKENS = lazy_pattern.compile(
    r"\b(?:box|raw|const|default|macro|where|gen|safe)\b|[~$]|!\s*[({\[]|\btrait\s+\w+[^{;]*="
)
_MODULE = lazy_pattern.compile(r"\bimport\s+module\b")

GRAMMARS: Mapping[str, Grammar] = {
    **dict.fromkeys(
        ("js", "jsx", "mjs", "cjs"), Grammar("JavaScript", _javascript, lazy_pattern.compile(r"@flow\b"), _SCRIPT)
    ),
    **dict.fromkeys(("ts", "mts", "cts"), Grammar("TypeScript", _typescript, None, _TYPED)),
    "tsx": Grammar("TypeScript", _tsx, None, _TYPED),
    "go": Grammar("Go", _go),
    "rs": Grammar("Rust", _rust, None, _TOKENS),
    **dict.fromkeys(("c", "h"), Grammar("C", _c, lazy_pattern.compile("__cplusplus"), _MACRO)),
    "java": Grammar("Java", _java, None, _MODULE),
}
"""By the end of a file's name."""
SHELL = frozenset({"sh", "bash"})


def is_installed(ending: str) -> bool:
    """Return whether this installation can parse the language."""
    return bool(_bash()) if ending in SHELL else _parser(GRAMMARS[ending]) is not None


def error(text: str, path: str) -> Found | None:
    """Return the first error of a text; None if there is none, or none that is certain."""
    ending = path.rpartition(".")[2].lower()
    if len(text) > _LONGEST:
        return None
    return _of_shell(text) if ending in SHELL else _of_grammar(text, GRAMMARS[ending])


def _of_grammar(text: str, grammar: Grammar) -> Found | None:
    parser = _parser(grammar)
    if parser is None or (grammar.unknown is not None and grammar.unknown.search(text)):
        return None
    root = _parsed(parser, text.encode())
    node = _first_error(root) if root.has_error else None
    if node is None:
        return None
    first, last = node.start_point.row, node.end_point.row
    lines = text.split("\n")
    if grammar.doubtful is not None and grammar.doubtful.search("\n".join(lines[max(0, first - 1) : last + 2])):
        return None
    if node.is_missing and node.type == ";" and not text.encode()[node.end_byte :].strip():
        return None  # a part of a file that another one includes
    if node.is_missing:
        return first + 1, f"not valid {grammar.name}: {node.type} is missing"
    near = text.encode()[node.start_byte : node.end_byte].decode(errors="replace").strip().partition("\n")[0]
    return first + 1, f"not valid {grammar.name}" + (f" near {near[:_SHOWN]}" if near else "")


def _parsed(parser: Parser, data: bytes) -> Node:
    """Return the root of the tree. OutOfTimeError if it takes too long, as that of some invalid texts does."""
    ends = time.monotonic() + _TIMEOUT
    try:
        tree = parser.parse(
            lambda place, _: data[place : place + _PIECE], progress_callback=lambda *_: time.monotonic() > ends
        )
    except ValueError:
        parser.reset()
        raise _too_slow() from None
    return tree.root_node


def _too_slow() -> OutOfTimeError:
    return OutOfTimeError(f"not parsed within {_TIMEOUT:.0f}s")


def _first_error(root: Node) -> Node | None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing or node.type == "ERROR":
            return node
        waiting += [child for child in reversed(node.children) if child.has_error]
    return None


@functools.cache
def _parser(grammar: Grammar) -> Parser | None:
    """Return None if the extra is not installed, or if its parts do not fit together."""
    try:
        from tree_sitter import Language, Parser

        return Parser(Language(grammar.load()))
    except (ImportError, AttributeError, ValueError):
        return None


_BASHES = (
    ("/bin/bash", "/usr/bin/bash") if sys.platform == "linux" else ("/opt/homebrew/bin/bash", "/usr/local/bin/bash")
)
"""Never one of the repository. The bash of macOS is too old to judge others' scripts."""
_OTHER_SHELL = lazy_pattern.compile(r"#!(?!.*\b(?:ba|da|a)?sh\b)")
_OF_BASH = lazy_pattern.compile(r"^.*?: line (\d+): (.*)$", re.MULTILINE)


@functools.cache
def _bash() -> str:
    import os

    return next((path for path in _BASHES if os.access(path, os.X_OK)), "")


def _of_shell(text: str) -> Found | None:
    """Let bash read a script without executing anything of it; it inherits no variable, and so no BASH_ENV."""
    program = _bash()
    if not program or _OTHER_SHELL.match(text):
        return None
    argv = (program, "--norc", "-O", "extglob", "-n")
    try:
        finished = child_process.run(argv, cwd="/", environment={"LC_ALL": "C"}, stdin=text.encode(), timeout=_TIMEOUT)
    except OSError:
        return None
    if finished.timed_out:
        raise _too_slow()
    found = _OF_BASH.search(finished.output.text(str)) if finished.exit_code else None
    return (int(found[1]), f"not valid in bash: {found[2].strip()}") if found else None
