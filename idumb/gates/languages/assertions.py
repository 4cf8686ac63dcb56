"""The tests that a file defines, and whether each asserts something: Python, JavaScript and TypeScript, Go, Rust.

A test asserts nothing only if nothing in it can fail it on purpose. What may assert elsewhere counts: helpers by their
name, by their file, or by what they get. Comments, strings and what cannot be reached assert nothing. A test is not
judged if it is skipped, or if its name or a comment says that it only must not fail.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from idumb import lazy_pattern

_LONGEST = 1024 * 1024
_ASSERTING = lazy_pattern.compile(
    r"assert|expect|verif|check|ensure|should|must|requir|raises|raise_|warns|throw|wait_?for|wait_?until|fail|abort|compar|equal|match|valid|approx"
    r"|snapshot|golden|regression|benchmark|reject|cmp|diff|panic",
    re.IGNORECASE,
)
"""Names of what may fail a test."""
_HELPERS = lazy_pattern.compile(
    r"(?:^|[._])(?:tests?|testing|conftest|\w*support|\w*helpers?|\w*utils?|common|fixtures)(?:$|[._])"
)
"""Modules that help tests; what comes from them may assert."""


_ONLY_RUNS = lazy_pattern.compile(
    r"(?:n[o']t|no|never|without)[ _]?(?:an? |any )?(?:rais|panic|throw|crash|fail|hang|block|error|exception|race)"
    r"|smoke|compil|deadlock|leak|crash|no[_ ]?op|succe|used to",
    re.IGNORECASE,
)
"""What says that a test has only to end."""


class ReadTest(NamedTuple):
    """A test: `line` counts from 1; `text` tells whether it changed; `asserts` is None if that is unknown.

    `skipped`: it never runs, on no machine.
    """

    line: int
    text: str
    asserts: bool | None
    skipped: bool = False


Tests = Mapping[str, ReadTest]


def of_file(path: str, data: bytes) -> Tests | None:
    """Return the tests by name; None if the file has no tests that idumb can read."""
    reader = next((read for pattern, read in _READERS if pattern.search(path)), None)
    if reader is None or len(data) > _LONGEST:
        return None
    tests: dict[str, ReadTest] = {}
    try:
        for name, test in reader(data.decode("utf-8-sig").replace("\r\n", "\n")):
            tests[name] = test._replace(asserts=None) if name in tests else test
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tests


def _of_python(text: str) -> Iterator[tuple[str, ReadTest]]:
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the user's strings
        tree = ast.parse(text)
    helpers = _Helpers(tree, text)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or helpers.is_test_case(node)):
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name.startswith("test"):
                    yield f"{node.name}.{method.name}", helpers.read(method)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match(r"test(?!_suite$)", node.name):
            test = helpers.read(node)
            if "fixture" not in test.text.partition("def ")[0]:
                yield node.name, test


_SKIPPED = lazy_pattern.compile(r"skip|xfail|todo", re.IGNORECASE)
_ALWAYS_SKIPPED = lazy_pattern.compile(r"(?:^|[ .])skip(?:$|[ (])")
_FREE = frozenset({"object", "TestCase", "IsolatedAsyncioTestCase"})
"""Base classes whose methods have telling names."""


class _Helpers:
    """What a Python file knows of functions that its tests may call."""

    def __init__(self, tree: Any, text: str) -> None:
        import ast

        self._ast = ast
        self._lines = text.split("\n")
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        self._defined = {node.name: node for node in ast.walk(tree) if isinstance(node, functions)}
        self._imported: set[str] = set()
        self._classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or _HELPERS.search(node.module or "")):
                self._imported |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                self._imported |= {a.asname or a.name.partition(".")[0] for a in node.names if _HELPERS.search(a.name)}

    def is_test_case(self, node: Any) -> bool:
        names = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
        return any("Test" in name for name in names)

    def read(self, node: Any) -> ReadTest:
        ast = self._ast
        source = "\n".join(self._lines[node.lineno - 1 : node.end_lineno])
        decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
        calls = " ".join(ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call))
        asserts = self._asserts(node)
        skipped = _SKIPPED.search(decorators) or re.search(r"\bskip|importorskip|xfail", calls)
        unknown = skipped or (not asserts and (_ONLY_RUNS.search(source) or "import" in node.name))
        given = [*node.args.args, *node.args.kwonlyargs]
        if not asserts and given and any(isinstance(each, ast.Return) and each.value for each in ast.walk(node)):
            unknown = True  # a function for callers, whose name happens to begin like that of a test
        never = _ALWAYS_SKIPPED.search(decorators) is not None
        return ReadTest(node.lineno, decorators + source, None if unknown else asserts, never)

    def _asserts(self, node: Any) -> bool:
        certain, called = self._found(node)
        return certain or not called.isdisjoint(self._asserting)

    @functools.cached_property
    def _asserting(self) -> frozenset[str]:
        """The functions of the file that assert, themselves or in others that they call."""
        found = {name: self._found(node) for name, node in self._defined.items()}
        callers: dict[str, list[str]] = {}
        for name, (_, called) in found.items():
            for each in called:
                callers.setdefault(each, []).append(name)
        waiting = [name for name, (certain, _) in found.items() if certain]
        asserting: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in asserting:
                asserting.add(name)
                waiting += callers.get(name, ())
        return frozenset(asserting)

    def _found(self, node: Any) -> tuple[bool, set[str]]:
        """Return whether a function asserts by itself, and otherwise which functions of the file it calls."""
        ast, called = self._ast, set[str]()
        if any(_ASSERTING.search(each.arg) for each in [*node.args.args, *node.args.kwonlyargs]):
            return True, called  # a fixture that compares
        for each in self._reached(node):
            if isinstance(each, ast.Assert) and not self._always_holds(each.test):
                return True, called
            if isinstance(each, ast.Raise | ast.Yield | ast.YieldFrom):
                return True, called
            if isinstance(each, ast.Call):
                own = self._own_function(each.func)
                if own == "" or any(map(self._asks_to_fail, each.keywords)):
                    return True, called
                called |= set() if own is None else {own}
        return False, called

    def _reached(self, node: Any) -> Iterator[Any]:
        """Yield what is in a function, without what runs never or may fail unnoticed."""
        ast = self._ast
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        waiting: list[Any] = [node]
        while waiting:
            each = waiting.pop()
            yield each
            for field, value in ast.iter_fields(each):
                if isinstance(each, ast.Try) and field == "body" and any(map(self._swallows, each.handlers)):
                    continue
                children = value if isinstance(value, list) else [value]
                end = next((n for n, child in enumerate(children) if isinstance(child, ast.Return)), len(children))
                for child in children[: end + 1]:
                    unused = isinstance(child, ast.FunctionDef) and not child.decorator_list and child.name not in names
                    if isinstance(child, ast.AST) and not unused:
                        waiting.append(child)

    def _swallows(self, handler: Any) -> bool:
        """Return whether a failed assertion ends silently in this handler."""
        ast = self._ast
        caught = "" if handler.type is None else ast.unparse(handler.type)
        silent = all(isinstance(each, ast.Pass | ast.Continue) for each in handler.body)
        return silent and re.fullmatch(r"|.*\b(?:AssertionError|Exception|BaseException)\b.*", caught) is not None

    def _always_holds(self, test: Any) -> bool:
        """Return whether a condition is true whatever the program does."""
        ast = self._ast
        if isinstance(test, ast.BoolOp):
            decides = any if isinstance(test.op, ast.Or) else all
            return decides(map(self._always_holds, test.values))
        return bool(test.value) if isinstance(test, ast.Constant) else isinstance(test, ast.Tuple) and bool(test.elts)

    def _asks_to_fail(self, keyword: Any) -> bool:
        """Return whether a call fails if something is wrong, as with `check=True`."""
        off = isinstance(keyword.value, self._ast.Constant) and not keyword.value.value
        return keyword.arg is not None and _ASSERTING.search(keyword.arg) is not None and not off

    def _own_function(self, function: Any) -> str | None:
        """Return the function of the file that is called, "" for one that may assert, None for any other."""
        ast = self._ast
        if isinstance(function, ast.Attribute):
            name, root = function.attr, function.value
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            owner = root.id if isinstance(root, ast.Name) else ""
        elif isinstance(function, ast.Name):
            name, owner = function.id, function.id
        else:
            return ""  # what is called is computed
        if _ASSERTING.search(name) or name.startswith("test") or owner in self._imported:
            return ""
        if owner in {"self", "cls"} and name not in self._defined:
            return ""  # a method of a base class
        own = owner == name or owner in {"self", "cls"} or owner in self._classes
        return name if own and name in self._defined else None


Asserts = Callable[[str, str], bool]
"""Whether a test asserts, by what follows its opening and by its file, both without comments."""
_COMMENT = r"(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)"
_TOKENS = lazy_pattern.compile(rf"(?P<kept>\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\\n])')|{_COMMENT}")
_SCRIPT_TOKENS = lazy_pattern.compile(
    rf"(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<template>`(?:\\.|[^`\\])*`)|{_COMMENT}"
)


def _blanked(text: str, tokens: re.Pattern[str], *kinds: str) -> str:
    """Return a text of the same length and lines, with blanks instead of some tokens."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match.lastgroup in kinds else match[0]

    closed = text.rfind("*/") + 2  # after that, a search from each `/*` would go through the rest of the file
    return tokens.sub(blank, text[:closed] + text[closed:].replace("/*", "  "))


def _blocks(
    text: str, bare: str, opening: re.Pattern[str], ends: str, asserts: Asserts
) -> Iterator[tuple[str, ReadTest]]:
    """Yield what `opening` finds: its groups are the indentation and the name. `bare` is `text` without comments."""
    for found in opening.finditer(text):
        start, end = _region(text, found, ends)
        holds = asserts(bare[found.end() : end], bare)
        unknown = _SKIPPED.search(found[0]) or (not holds and _ONLY_RUNS.search(text[start:end]))
        skipped = _ALWAYS_SKIPPED.search(found[0]) is not None
        line = text.count("\n", 0, found.start("name")) + 1
        yield found["name"], ReadTest(line, text[start:end].rstrip(), None if unknown else holds, skipped)


def _region(text: str, found: re.Match[str], ends: str) -> tuple[int, int]:
    """Return where a block ends: at the next line that begins with one of `ends` and is not indented deeper."""
    deepest = len(found["indent"])
    following = re.compile(rf"^[ \t]{{0,{deepest}}}(?:{ends})", re.MULTILINE).search(text, found.end())
    return found.start(), following.start() if following else len(text)


def _calls_asserting(body: str, file: str, asserts: re.Pattern[str], defines: re.Pattern[str], ends: str) -> bool:
    """Return whether the body calls a function of the same file that asserts."""
    return not _asserting(file, asserts, defines, ends).isdisjoint(_WORD.findall(body))


@functools.lru_cache(maxsize=4)
def _asserting(file: str, asserts: re.Pattern[str], defines: re.Pattern[str], ends: str) -> frozenset[str]:
    """Return the names of the functions of a file that assert; each of its tests may call one."""
    return frozenset(
        found["name"]
        for found in defines.finditer(file)
        if asserts.search(file[slice(*_region(file, found, ends))].partition("(")[2]) is not None
    )


_WORD = lazy_pattern.compile(r"\w+")
_SCRIPT_TEST = lazy_pattern.compile(
    r"^(?P<indent>[ \t]*)(?:x?it|test|specify)(?:\.\w+)*\(\s*(?P<quote>['\"`])(?P<name>.+?)(?P=quote)", re.MULTILINE
)
_SCRIPT_ENDS = r"(?:it|test|describe|specify|context|before|after|beforeEach|afterEach|function|class|export)\b"
_SCRIPT_DEFINES = lazy_pattern.compile(
    r"^(?P<indent>[ \t]*)(?:export[ \t]+)?(?:async[ \t]+)?(?:function[ \t]*\*?|const|let|var)[ \t]+(?P<name>\w+)",
    re.MULTILINE,
)
_SCRIPT_ASSERTS = lazy_pattern.compile(
    rf"{_ASSERTING.pattern}|\bt\.\w|\bcy\.|\bis\(|getBy|findBy|\bdone\b|waitFor|request\(", re.IGNORECASE
)
_SCRIPT_IMPORTS = lazy_pattern.compile(
    r"(?:import\s+(?P<a>[^;'\"]+?)\s+from\s*|(?:const|let|var)\s+(?P<b>[^;'\"=]+?)\s*=\s*require\(\s*)['\"](?P<module>[^'\"]+)"
)


_GIVEN = lazy_pattern.compile(r"\s*(?:\)|,\s*[\w.]+\s*\))")
"""A test without a body, or whose body is a function that another place defines."""


def _of_script(text: str) -> Iterator[tuple[str, ReadTest]]:
    bare = _blanked(text, _SCRIPT_TOKENS, "string", "comment")
    code = _blanked(text, _SCRIPT_TOKENS, "template", "comment")  # tests in a template are the input of another one
    asserts = functools.partial(_script_asserts, _imported_helpers(text))
    for name, test in _blocks(text, bare, _SCRIPT_TEST, _SCRIPT_ENDS, asserts):
        first = code.split("\n", test.line)[test.line - 1]
        if first.strip():
            yield name, test


def _script_asserts(helpers: frozenset[str], body: str, file: str) -> bool:
    return (
        _SCRIPT_ASSERTS.search(body) is not None
        or _calls_asserting(body, file, _SCRIPT_ASSERTS, _SCRIPT_DEFINES, _SCRIPT_ENDS)
        or not helpers.isdisjoint(_WORD.findall(body))
        or _GIVEN.match(body) is not None
    )


def _imported_helpers(file: str) -> frozenset[str]:
    """Return the names that a file imports from modules that may assert."""
    return frozenset(
        name
        for made in _SCRIPT_IMPORTS.finditer(file)
        if _HELPERS.search(re.sub(r"[/-]", ".", made["module"]))
        for name in _WORD.findall(made["a"] or made["b"])
    )


_GO_TEST = lazy_pattern.compile(
    r"^(?P<indent>)func (?P<name>Test(?:[^a-z\s(]\w*)?)(?=\(\w+ \*testing\.T\))", re.MULTILINE
)
_GO_FREE = r"\.(?:Parallel|Helper|Log|Logf|Setenv|TempDir|Cleanup|Name|Context|Chdir)\("


def _of_go(text: str) -> Iterator[tuple[str, ReadTest]]:
    bare = _blanked(text, _TOKENS, "comment")
    for name, test in _blocks(text, bare, _GO_TEST, "func ", _go_asserts):
        never = re.search(r"\{\n\s*t\.Skip(?:f|Now)?\(", test.text) is not None
        yield name, test._replace(asserts=None, skipped=never) if ".Skip" in test.text else test


def _go_asserts(body: str, _: str) -> bool:
    """Whatever gets the `*testing.T` may fail the test."""
    named, _, block = body.partition(")")
    t = re.escape(named.strip("(").partition(" ")[0])
    return re.search(rf"\b{t}\b(?!{_GO_FREE})|\bpanic\(|log\.Fatal|os\.Exit", block) is not None


_RUST_TEST = lazy_pattern.compile(
    r"^(?P<indent>[ \t]*)#\[(?:\w+::)*test\b[^\n]*\n"
    r"(?:[ \t]*(?:#|//)[^\n]*\n)*[ \t]*(?:pub )?(?:async )?fn (?P<name>\w+)",
    re.MULTILINE,
)
_RUST_ENDS = r"(?:#\[|pub |fn |async fn |mod |impl\b|struct |enum |const |static |macro_rules!|\})"
_RUST_DEFINES = lazy_pattern.compile(
    r"^(?P<indent>[ \t]*)(?:pub )?(?:async )?(?:fn |macro_rules! *)(?P<name>\w+)", re.MULTILINE
)
_RUST_ASSERTS = lazy_pattern.compile(
    rf"{_ASSERTING.pattern}|unwrap|unreachable!|\?|Result|exit\(|todo!|insta|prop_|trybuild|::<", re.IGNORECASE
)


def _of_rust(text: str) -> Iterator[tuple[str, ReadTest]]:
    bare = _blanked(text, _TOKENS, "comment")
    for name, test in _blocks(text, bare, _RUST_TEST, _RUST_ENDS, _rust_asserts):
        unknown = re.search(r"#\[(?:ignore|should_panic)", test.text)
        yield name, test._replace(asserts=None, skipped="#[ignore" in test.text) if unknown else test


def _rust_asserts(body: str, file: str) -> bool:
    own = _RUST_ASSERTS.search(body) is not None
    return own or _calls_asserting(body, file, _RUST_ASSERTS, _RUST_DEFINES, _RUST_ENDS)


_READERS: Sequence[tuple[re.Pattern[str], Callable[[str], Iterator[tuple[str, ReadTest]]]]] = (
    (lazy_pattern.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests)\.py$"), _of_python),
    (lazy_pattern.compile(r"\.(?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)__tests__/.*\.[cm]?[jt]sx?$"), _of_script),
    (lazy_pattern.compile(r"_test\.go$"), _of_go),
    (lazy_pattern.compile(r"\.rs$"), _of_rust),
)
