"""The tests that a Python file defines, and whether each asserts something.

A test asserts nothing only if nothing in it can fail it on purpose. What may assert elsewhere counts: helpers by their
names, by their modules, or by what they call. What cannot be reached asserts nothing. A test is not judged if it is
skipped, or if its name or a comment says that it only has to end.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.gates.languages import python_source

_ASSERTING = lazy_pattern.compile(
    r"assert|expect|verif|check|ensure|should|must|requir|raises|raise_|warns|throw|wait_?for|wait_?until|fail|abort"
    r"|compar|equal|match|valid|approx|snapshot|golden|regression|benchmark|reject|cmp|diff|panic",
    re.IGNORECASE,
)
"""Names of what may fail a test."""
_HELPERS = lazy_pattern.compile(
    r"(?:^|[._])(?:tests?|testing|conftest|\w*support|\w*helpers?|\w*utils?|common|fixtures)(?:$|[._])"
)
"""Modules that help tests; what comes from them may assert."""
_ONLY_RUNS = ("smoke", "compil", "deadlock", "leak", "crash", "no op", "succe", "used to")
_NEGATIVE = frozenset(("not", "no", "never", "without", "doesn't", "don't"))
_FAILURES = ("rais", "panic", "throw", "crash", "fail", "hang", "block", "error", "exception", "race")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class ReadTest(NamedTuple):
    """A test: `line` counts from 1; `text` tells whether it changed; `asserts` is None if that is unknown.

    `skipped`: it never runs, on no machine.
    """

    line: int
    text: str
    asserts: bool | None
    skipped: bool = False


def read(text: str) -> list[tuple[str, ReadTest]]:
    """Return each test with its name; none of a text that cannot be read."""
    return python_source.read(text, lambda tree: [*_tests(tree, text)]) or []


def _tests(tree: ast.Module, text: str) -> Iterator[tuple[str, ReadTest]]:
    file = _File(tree, text)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (
            node.name.startswith("Test") or any("Test" in python_source.last(base) for base in node.bases)
        ):
            for method in node.body:
                if isinstance(method, _Function) and method.name.startswith("test"):
                    yield f"{node.name}.{method.name}", file.read(method)
        elif isinstance(node, _Function) and node.name.startswith("test") and not _is_fixture(node):
            yield node.name, file.read(node)


def _only_runs(words: str) -> bool:
    """Return whether a name or text says that a test has only to end."""
    listed = words.lower().replace("_", " ").split()
    negative = any(one in _NEGATIVE and other.startswith(_FAILURES) for one, other in pairwise(listed))
    return negative or any(each in " ".join(listed) for each in _ONLY_RUNS)


def _is_fixture(node: _Function) -> bool:
    return any("fixture" in ast.unparse(each) for each in node.decorator_list)


class _File:
    """What a file knows of functions that its tests may call."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._lines = text.split("\n")
        nodes = [*ast.walk(tree)]
        self._defined = {node.name: node for node in nodes if isinstance(node, _Function)}
        self._classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        self._known: dict[str, bool] = {}
        self._imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if _may_help(node, alias)
        }

    def read(self, node: _Function) -> ReadTest:
        source = "\n".join(self._lines[node.lineno - 1 : node.end_lineno])
        decorators = [python_source.last(each) for each in node.decorator_list]
        called = [python_source.last(each) for each in ast.walk(node) if isinstance(each, ast.Call)]
        skips = any("skip" in name or name == "xfail" for name in (*decorators, *called))
        asserts = self._asserts(node)
        # A function that gets and gives values is one for callers, and its name only begins like that of a test.
        gives = any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(node))
        is_unknown = skips or (
            not asserts and (_only_runs(source) or "import" in node.name or (gives and bool(node.args.args)))
        )
        return ReadTest(node.lineno, ast.unparse(node), None if is_unknown else asserts, "skip" in decorators)

    def _asserts(self, node: _Function) -> bool:
        arguments = (*node.args.args, *node.args.kwonlyargs)
        return any(_ASSERTING.search(each.arg) for each in arguments) or any(map(self._may_fail, _reached(node)))

    def _may_fail(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Assert):
            return not _always_holds(node.test)
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.Raise | ast.Yield | ast.YieldFrom)
        name, owner = python_source.last(node.func), node.func
        while isinstance(owner, ast.Attribute | ast.Call):
            owner = owner.value if isinstance(owner, ast.Attribute) else owner.func
        root = owner.id if isinstance(owner, ast.Name) else ""
        may_fail = name.startswith("test") or _ASSERTING.search(name) is not None or root in self._imported
        of_base = root in {"self", "cls"} and name not in self._defined
        if not name or may_fail or of_base or any(map(_asks_to_fail, node.keywords)):
            return True
        return (root in {name, "self", "cls"} or root in self._classes) and self._own(name)

    def _own(self, name: str) -> bool:
        """Return whether a function of the file asserts, itself or in others that it calls."""
        if name in self._defined and name not in self._known:
            self._known[name] = False  # while it is searched, as functions may call one another
            self._known[name] = self._asserts(self._defined[name])
        return self._known.get(name, False)


def _may_help(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    if isinstance(node, ast.ImportFrom) and node.level:
        return True
    return _HELPERS.search((node.module or "") if isinstance(node, ast.ImportFrom) else alias.name) is not None


def _reached(node: _Function) -> Iterator[ast.AST]:
    """Yield what is in a function, without what runs never or may fail unnoticed."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    waiting: list[ast.AST] = [node]
    while waiting:
        each = waiting.pop()
        yield each
        for field, value in ast.iter_fields(each):
            if isinstance(each, ast.Try) and field == "body" and any(map(_swallows, each.handlers)):
                continue
            children = value if isinstance(value, list) else [value]
            end = next((n for n, child in enumerate(children) if isinstance(child, ast.Return)), len(children))
            waiting += [
                child
                for child in children[: end + 1]
                if isinstance(child, ast.AST)
                and not (isinstance(child, ast.FunctionDef) and not child.decorator_list and child.name not in names)
            ]


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Return whether a failed assertion ends silently in this handler."""
    caught = (
        {""}
        if handler.type is None
        else {python_source.last(each) for each in ast.walk(handler.type) if isinstance(each, ast.expr)}
    )
    silent = all(isinstance(each, ast.Pass | ast.Continue) for each in handler.body)
    return silent and not caught.isdisjoint(("", "AssertionError", "Exception", "BaseException"))


def _always_holds(test: ast.expr) -> bool:
    """Return whether a condition is true whatever the program does."""
    if isinstance(test, ast.BoolOp):
        return (any if isinstance(test.op, ast.Or) else all)(map(_always_holds, test.values))
    return bool(test.value) if isinstance(test, ast.Constant) else isinstance(test, ast.Tuple) and bool(test.elts)


def _asks_to_fail(keyword: ast.keyword) -> bool:
    """Return whether a call fails if something is wrong, as with `check=True`."""
    off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
    return keyword.arg is not None and _ASSERTING.search(keyword.arg) is not None and not off
