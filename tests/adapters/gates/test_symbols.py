"""R-GIT-5: the names that a file defines."""

from __future__ import annotations

from idumb.domain.plans.plan import SymbolClaim
from idumb.domain.proof import ledger as compared
from idumb.domain.proof.ledger import SymbolSet
from idumb.gates import python_source, registry
from tests.support.cases import every

PYTHON = """
import os
LIMIT = 3
a, (b, c) = 1, (2, 3)
size: int = 1; os.environ[a] = os.linesep = "1"
def load():
    inner = 1
    def nested(): ...
async def save(): ...
class Config(Base):
    field = 1
    def read(self): ...
    class Inner:
        def deep(self): ...
if LIMIT:
    def chosen(): ...
try:
    def tried(): ...
except ImportError:
    def instead(): ...
"""
_PYTHON_NAMES = "LIMIT a b c size load save Config Config.read Config.Inner Config.Inner.deep chosen tried instead"


def test_definitions_are_recognized() -> None:
    """A byte order mark is no part of one."""
    found = python_source.definitions("a.py", PYTHON.encode())
    assert found is not None
    assert found.keys() == set(_PYTHON_NAMES.split())
    assert python_source.definitions("a.py", b"\xef\xbb\xbf" + PYTHON.encode()) == found


def test_a_condition_also_means_imports_and_attributes_of_classes() -> None:
    imports = (
        "import os.path as p, sys\nfrom a import b as c\ntry:\n    import fast\nexcept ImportError:\n    fast = None\n"
    )
    assert python_source.names(imports) == {"p", "sys", "c", "fast"}
    assert python_source.names(PYTHON) == {"os", "Config.field", *_PYTHON_NAMES.split()}
    assert [python_source.names(text) for text in ("def broken(:", "x = \0", "(" * 5000)] == [frozenset()] * 3


@every(
    "path, data",
    [
        ("a.lua", b"function load() end"),
        ("README", b"load"),
        ("a.py", b"def broken(:"),
        ("a.py", b"\xff\xfe"),
        ("a.py", b"\0"),
        ("a.py", b"(" * 100_000),
    ],
)
def test_unreadable_source_is_not_judged(path: str, data: bytes) -> None:
    assert python_source.definitions(path, data) is None


def test_the_languages_that_are_recorded_are_those_that_can_be_read() -> None:
    gates = registry.StepGates()
    for path in ("src/a.py", "src/a.pyi", "src/a.go", "a.lua", "a.ts", "py", "src.d/go", "Makefile", "a.py/b"):
        assert gates.can_read(path) is (gates.definitions(path, b"") is not None)


BEFORE = "def load():\n    return 1\n\n\nclass Config:\n    def read(self):\n        return 1\n"


def _lines(after: str, *claims: SymbolClaim, declared: bool = True) -> list[compared.SymbolLine]:
    definitions = (python_source.definitions("a.py", text.encode()) for text in (BEFORE, after))
    return list(compared.compare_symbols(claims if declared else None, [SymbolSet("a.py", *definitions)]))


@every(
    "claims, words",
    [
        ((), "the symbol save in a.py was added and is not declared"),
        (
            (SymbolClaim("add", "save"), SymbolClaim("add", "Config.close")),
            "the symbol Config.close was declared (add Config.close), but nothing did that",
        ),
    ],
)
def test_a_symbol_that_the_plan_does_not_expect_is_named(claims: tuple[SymbolClaim, ...], words: str) -> None:
    """R-GATE-4. Without declared symbols, the same change is recorded and fails nothing."""
    after = f"{BEFORE}\n\ndef save():\n    return 2\n"
    assert [line.words for line in _lines(after, *claims) if not line.holds] == [words]
    assert all(line.holds for line in _lines(after, declared=False))


@every(
    "after, text",
    [
        (BEFORE.replace("return 1\n\n", "return 2\n\n"), "changed load in a.py"),
        (BEFORE.replace("        return 1", "        return 2"), "changed Config.read in a.py"),
        ("# moved\n\n" + BEFORE, ""),
    ],
)
def test_the_definition_that_changed_is_recorded(after: str, text: str) -> None:
    assert ", ".join(compared.symbol_texts(_lines(after, declared=False))) == text
