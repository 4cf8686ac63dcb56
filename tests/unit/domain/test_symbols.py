"""R-GIT-5: symbols declared against symbols found."""

from __future__ import annotations

from idumb.domain.plans.plan import SymbolClaim
from idumb.domain.proof import symbols
from idumb.domain.proof.symbols import Definitions, SymbolSet
from tests.support.cases import every


def _symbols(path: str, before: str | None, after: str | None) -> SymbolSet:
    """`name=text` has a text of its own."""

    def texts(words: str | None) -> Definitions | None:
        return None if words is None else {word.partition("=")[0]: (word,) for word in words.split()}

    return SymbolSet(path, texts(before), texts(after))


def _differences(claims: str | None, *symbol_sets: SymbolSet) -> list[str]:
    declared = None if claims is None else [SymbolClaim(*one.split()) for one in claims.split(", ") if one]
    return [f"{line.status}: {line.actual} {line.name}" for line in symbols.compare(declared, symbol_sets)]


def test_each_name_is_declared_undeclared_or_missing() -> None:
    cases: list[tuple[str, str, str, list[str]]] = [
        ("add load", "", "load", ["declared: added load"]),
        ("add load", "", "load save", ["declared: added load", "undeclared: added save"]),
        ("add load", "load", "load", ["missing: None load"]),
        ("remove load", "load", "", ["declared: removed load"]),
        ("add load", "load", "", ["missing: None load", "undeclared: removed load"]),
        ("", "", "load", ["undeclared: added load"]),
        ("add Config", "", "Config Config.load", ["declared: added Config"]),
        ("add Config.load", "Config", "Config Config.load", ["declared: added Config.load"]),
        ("add load", "Config", "Config Config.load", ["declared: added Config.load"]),
        ("add Config", "Config", "Config Config.load", ["missing: None Config", "undeclared: added Config.load"]),
        ("add load()", "", "load _helper", ["declared: added load", "recorded: added _helper"]),
        ("add load", "save=1", "load save=2", ["declared: added load", "recorded: changed save"]),
        ("add _helper", "", "_helper", ["declared: added _helper"]),
        ("add test_*", "", "test_a test_b", ["declared: added test_a", "declared: added test_b"]),
        ("add config.load", "", "load", ["declared: added load"]),
    ]
    assert not [
        (claims, before, after, problems)
        for claims, before, after, problems in cases
        if _differences(claims, _symbols("src/config.py", before, after)) != problems
    ]


def test_a_name_moved_to_another_file_is_neither_added_nor_removed() -> None:
    lines = _differences("", _symbols("a.py", "load", ""), _symbols("b.py", "", "load"))
    assert lines == ["recorded: removed load", "recorded: added load"]


@every(
    "path, name, text",
    [
        ("tests/test_a.py", "test_load", "def test_load():"),
        ("tests/test_a.py", "TestLoad", "class TestLoad:"),
    ],
)
def test_private_names_imports_and_tests_need_no_declaration(path: str, name: str, text: str) -> None:
    change = SymbolSet(path, {}, {name: (text,), "Load": ("pub fn Load",)})
    lines = symbols.compare([SymbolClaim("add", "Load")], [change])
    assert sorted((line.name, line.status) for line in lines) == sorted([("Load", "declared"), (name, "recorded")])


@every(
    "path, name, text",
    [
        ("src/a.py", "test_load", "def test_load():"),
    ],
)
def test_other_names_need_a_declaration(path: str, name: str, text: str) -> None:
    lines = symbols.compare([], [SymbolSet(path, {}, {name: (text,)})])
    assert [(line.name, line.status) for line in lines] == [(name, "undeclared")]


def test_a_declared_name_may_be_in_an_unreadable_file() -> None:
    problems = _differences("add load, add save", _symbols("a.lua", None, None), _symbols("b.py", "", "save"))
    assert problems == ["not judged: None load", "declared: added save", "not judged: None any"]


@every(
    "before, after, lines",
    [
        ("load save=1 old", "load save=2 new", ["added new", "removed old", "changed save"]),
        ("", "Config Config.load _key", ["added Config", "added _key"]),
        ("Config=1 Config.load=1 Config.save", "Config=2 Config.load=2 Config.save", ["changed Config.load"]),
        ("Config=1", "Config=2 Config.load", ["added Config.load"]),
        ("Config=1 Config.load", "Config=2 Config.load", ["changed Config"]),
        ("load", "load", []),
    ],
)
def test_without_declared_symbols_what_happened_is_recorded_and_fails_nothing(
    before: str, after: str, lines: list[str]
) -> None:
    """R-GATE-4: the ledger has the symbols of every changed file."""
    compared = symbols.compare(None, [_symbols("src/config.py", before, after)])
    assert sorted(f"{line.actual} {line.name}" for line in compared) == sorted(lines)
    assert all(line.status == symbols.RECORDED and line.holds for line in compared)


def test_a_file_that_cannot_be_read_is_named_without_declared_symbols() -> None:
    assert _differences(None, _symbols("a.py", "load", None)) == ["not judged: None any"]


def test_many_symbols_are_recorded_by_file_and_shown_in_part() -> None:
    names = " ".join(f"name{number:03}" for number in range(130))
    lines = symbols.compare(None, [_symbols("a.py", "", names)])
    assert (len(lines), lines[-1].name) == (100, "name099")
    texts = symbols.as_texts(lines)
    assert (texts[0], texts[-1], len(texts)) == ("added name000 in a.py", "and 80 more", 21)
