"""The tests that a file defines, and whether each asserts something: Python, JavaScript and TypeScript, Go, Rust.

A test asserts nothing only if nothing in it can fail it on purpose. What may assert elsewhere counts: helpers by their
name, by their file, or by what they get. A test is not judged if it is skipped, or if its name or a comment says that
it only must not fail.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_LONGEST = 1024 * 1024
_ASSERTING = re.compile(
    r"assert|expect|verif|check|ensure|should|must|requir|raises|warns|throw|fail|abort|compar|equal|match|valid|approx"
    r"|snapshot|golden|regression|benchmark|reject|cmp|diff|panic",
    re.IGNORECASE,
)
"""Names of what may fail a test."""
_HELPERS = re.compile(
    r"(?:^|[._])(?:tests?|testing|conftest|\w*support|\w*helpers?|\w*utils?|common|fixtures)(?:$|[._])"
)
"""Modules that help tests; what comes from them may assert."""


_ONLY_RUNS = re.compile(
    r"(?:n[o']t|no|never|without)[ _]?(?:an? |any )?(?:rais|panic|throw|crash|fail|hang|block|error|exception|race)"
    r"|smoke|compil|deadlock|leak|crash|no[_ ]?op|succe|used to",
    re.IGNORECASE,
)
"""What says that a test has only to end."""


class ReadTest(NamedTuple):
    """A test: `line` counts from 1; `text` tells whether it changed; `asserts` is None if that is unknown."""

    line: int
    text: str
    asserts: bool | None


Tests = Mapping[str, ReadTest]


def of_file(path: str, data: bytes) -> Tests | None:
    """Return the tests by name; None if the file has no tests that idumb can read."""
    reader = next((read for pattern, read in _READERS if pattern.search(path)), None)
    if reader is None or len(data) > _LONGEST:
        return None
    tests: dict[str, ReadTest] = {}
    try:
        for name, test in reader(data.decode("utf-8").replace("\r\n", "\n")):
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
            yield node.name, helpers.read(node)


_SKIPPED = re.compile(r"skip|xfail|todo", re.IGNORECASE)
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
        unknown = skipped or (not asserts and _ONLY_RUNS.search(source))
        return ReadTest(node.lineno, decorators + source, None if unknown else asserts)

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
        for each in ast.walk(node):
            if isinstance(each, ast.Assert) and not isinstance(each.test, ast.Constant):
                return True, called
            if isinstance(each, ast.Raise | ast.Yield | ast.YieldFrom):
                return True, called
            if isinstance(each, ast.Call):
                own = self._own_function(each.func)
                if own == "":
                    return True, called
                called |= set() if own is None else {own}
        return False, called

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
"""Whether a test asserts, by its text and that of its file."""


def _blocks(text: str, opening: re.Pattern[str], ends: str, asserts: Asserts) -> Iterator[tuple[str, ReadTest]]:
    """Yield what `opening` finds: its groups are the indentation and the name."""
    for found in opening.finditer(text):
        block = _region(text, found, ends)
        holds = asserts(block, text)
        unknown = _SKIPPED.search(found[0]) or (not holds and _ONLY_RUNS.search(block))
        yield (
            found["name"],
            ReadTest(text.count("\n", 0, found.start("name")) + 1, block, None if unknown else holds),
        )


def _region(text: str, found: re.Match[str], ends: str) -> str:
    """Return the text up to the next line that begins with one of `ends` and is not indented deeper."""
    deepest = len(found["indent"])
    following = re.compile(rf"^[ \t]{{0,{deepest}}}(?:{ends})", re.MULTILINE).search(text, found.end())
    return text[found.start() : following.start() if following else len(text)].rstrip()


def _calls_asserting(body: str, file: str, asserts: re.Pattern[str], defines: re.Pattern[str], ends: str) -> bool:
    """Return whether the body calls a function of the same file that asserts."""
    return not _asserting(file, asserts, defines, ends).isdisjoint(_WORD.findall(body))


@functools.lru_cache(maxsize=4)
def _asserting(file: str, asserts: re.Pattern[str], defines: re.Pattern[str], ends: str) -> frozenset[str]:
    """Return the names of the functions of a file that assert; each of its tests may call one."""
    return frozenset(
        found["name"]
        for found in defines.finditer(file)
        if asserts.search(_region(file, found, ends).partition("(")[2]) is not None
    )


_WORD = re.compile(r"\w+")
_SCRIPT_TEST = re.compile(
    r"^(?P<indent>[ \t]*)(?:it|test|specify)(?:\.\w+)*\(\s*(?P<quote>['\"`])(?P<name>.+?)(?P=quote)", re.MULTILINE
)
_SCRIPT_ENDS = r"(?:it|test|describe|specify|context|before|after|beforeEach|afterEach|function|class|export)\b"
_SCRIPT_DEFINES = re.compile(
    r"^(?P<indent>[ \t]*)(?:export[ \t]+)?(?:async[ \t]+)?(?:function[ \t]*\*?|const|let|var)[ \t]+(?P<name>\w+)",
    re.MULTILINE,
)
_SCRIPT_ASSERTS = re.compile(
    rf"{_ASSERTING.pattern}|\bt\.\w|\bcy\.|\bis\(|getBy|findBy|\bdone\b|waitFor|request\(", re.IGNORECASE
)
_SCRIPT_IMPORTS = re.compile(
    r"(?:import\s+(?P<a>[^;'\"]+?)\s+from\s*|(?:const|let|var)\s+(?P<b>[^;'\"=]+?)\s*=\s*require\(\s*)['\"](?P<module>[^'\"]+)"
)


def _of_script(text: str) -> Iterator[tuple[str, ReadTest]]:
    yield from _blocks(text, _SCRIPT_TEST, _SCRIPT_ENDS, _script_asserts)


def _script_asserts(block: str, file: str) -> bool:
    found = _SCRIPT_TEST.match(block)
    body = block[found.end() :] if found else block
    return (
        _SCRIPT_ASSERTS.search(body) is not None
        or _calls_asserting(body, file, _SCRIPT_ASSERTS, _SCRIPT_DEFINES, _SCRIPT_ENDS)
        or not _imported_helpers(file).isdisjoint(_WORD.findall(body))
    )


@functools.lru_cache(maxsize=4)
def _imported_helpers(file: str) -> frozenset[str]:
    """Return the names that a file imports from modules that may assert."""
    return frozenset(
        name
        for made in _SCRIPT_IMPORTS.finditer(file)
        if _HELPERS.search(re.sub(r"[/-]", ".", made["module"]))
        for name in _WORD.findall(made["a"] or made["b"])
    )


_GO_TEST = re.compile(r"^(?P<indent>)func (?P<name>Test(?:[^a-z\s(]\w*)?)\((?P<t>\w+) \*testing\.T\)", re.MULTILINE)
_GO_FREE = r"\.(?:Parallel|Helper|Log|Logf|Setenv|TempDir|Cleanup|Name|Context|Chdir)\("


def _of_go(text: str) -> Iterator[tuple[str, ReadTest]]:
    for name, test in _blocks(text, _GO_TEST, "func ", _go_asserts):
        yield name, test._replace(asserts=None) if ".Skip" in test.text else test


def _go_asserts(block: str, _: str) -> bool:
    """Whatever gets the `*testing.T` may fail the test."""
    found = _GO_TEST.match(block)
    if found is None:
        return True
    body, t = block[found.end() :], re.escape(found["t"])
    return re.search(rf"\b{t}\b(?!{_GO_FREE})|\bpanic\(|log\.Fatal|os\.Exit", body) is not None


_RUST_TEST = re.compile(
    r"^(?P<indent>[ \t]*)#\[(?:\w+::)*test\b[^\n]*\n"
    r"(?:[ \t]*(?:#|//)[^\n]*\n)*[ \t]*(?:pub )?(?:async )?fn (?P<name>\w+)",
    re.MULTILINE,
)
_RUST_ENDS = r"(?:#\[|pub |fn |async fn |mod |impl\b|struct |enum |const |static |macro_rules!|\})"
_RUST_DEFINES = re.compile(r"^(?P<indent>[ \t]*)(?:pub )?(?:async )?(?:fn |macro_rules! *)(?P<name>\w+)", re.MULTILINE)
_RUST_ASSERTS = re.compile(
    rf"{_ASSERTING.pattern}|unwrap|unreachable!|\?|Result|exit\(|todo!|insta|prop_|::<", re.IGNORECASE
)


def _of_rust(text: str) -> Iterator[tuple[str, ReadTest]]:
    for name, test in _blocks(text, _RUST_TEST, _RUST_ENDS, _rust_asserts):
        yield name, test._replace(asserts=None) if re.search(r"#\[(?:ignore|should_panic)", test.text) else test


def _rust_asserts(block: str, file: str) -> bool:
    found = _RUST_TEST.match(block)
    body = block[found.end() :] if found else block
    own = _RUST_ASSERTS.search(body) is not None
    return own or _calls_asserting(body, file, _RUST_ASSERTS, _RUST_DEFINES, _RUST_ENDS)


_READERS: Sequence[tuple[re.Pattern[str], Callable[[str], Iterator[tuple[str, ReadTest]]]]] = (
    (re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests)\.py$"), _of_python),
    (re.compile(r"\.(?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)__tests__/.*\.[cm]?[jt]sx?$"), _of_script),
    (re.compile(r"_test\.go$"), _of_go),
    (re.compile(r"\.rs$"), _of_rust),
)
