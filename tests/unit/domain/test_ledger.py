"""The ledger: declared files and symbols against what changed, path by path, name by name (R-GIT-5)."""

from __future__ import annotations

from idumb.domain import paths
from idumb.domain.plans.plan import FileClaim, SymbolClaim
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import Change, Definitions, Entry, SymbolSet
from tests.support.cases import every

FILE = Entry(0o100644, "1" * 40)
OTHER = Entry(0o100644, "2" * 40)


def created(path: str) -> Change:
    return Change(path, ledger.CREATED, None, FILE)


def modified(path: str) -> Change:
    return Change(path, ledger.MODIFIED, FILE, OTHER)


def deleted(path: str) -> Change:
    return Change(path, ledger.DELETED, FILE, None)


def claims(*pairs: tuple[str, str]) -> tuple[FileClaim, ...]:
    return tuple(FileClaim(verb, path) for verb, path in pairs)


def test_changes_as_declared_match() -> None:
    compared = ledger.compare(
        (*claims(("create", "a"), ("modify", "b"), ("delete", "c"), ("read", "d")), FileClaim("move", "e", "f")),
        [created("a"), modified("b"), deleted("c"), deleted("e"), created("f")],
    )
    assert compared.holds
    assert compared.changed == ("a", "b", "c", "e", "f")


def test_an_undeclared_change_and_a_missing_one_are_both_named() -> None:
    compared = ledger.compare(claims(("create", "a")), [created("b")])
    assert compared.undeclared == ("b",)
    assert compared.paths(ledger.MISSING) == ("a",)
    assert not compared.holds


@every("verb, change", [("create", modified("a")), ("modify", created("a")), ("delete", modified("a"))])
def test_a_different_kind_of_change_than_declared_is_a_mismatch(verb: str, change: Change) -> None:
    assert ledger.compare(claims((verb, "a")), [change]).paths(ledger.MISMATCH) == ("a",)
    assert ledger.compare(claims((verb, "?")), [change]).paths(ledger.MISMATCH) == ("a",)


def test_each_verb_but_change_demands_its_change() -> None:
    every = claims(("create", "a"), ("modify", "b"), ("delete", "c"), ("change", "d"))
    assert ledger.compare(every, []).paths(ledger.MISSING) == ("a", "b", "c")
    assert all(ledger.compare(every[3:], [change("d")]).holds for change in (created, modified, deleted))


def test_only_a_declared_name_unprotects_what_tools_read_and_nothing_unprotects_what_the_project_protects() -> None:
    declared = claims(("create", "AGENTS.md"), ("create", "db/1.sql"))
    compared = ledger.compare(declared, [created("AGENTS.md"), created("db/1.sql")], ["db/**"])
    assert (compared.paths(ledger.DECLARED), compared.paths(ledger.PROTECTED)) == (("AGENTS.md",), ("db/1.sql",))
    accepted = ledger.compare((), [created("AGENTS.md")], (), ["AGENTS.md"])
    assert accepted.paths(ledger.PROTECTED) == ("AGENTS.md",)


def test_a_person_can_accept_another_change_than_the_declared_one() -> None:
    assert ledger.compare(claims(("create", "a")), [modified("a")], (), ["a"]).holds


def test_a_glob_allows_a_change_and_does_not_require_one() -> None:
    for verb, change in (("modify", modified), ("change", created), ("delete", deleted)):
        assert ledger.compare(claims((verb, "src/**")), [change("src/x/y.py")]).holds
        assert ledger.compare(claims((verb, "src/**")), []).holds


@every("pattern", ["?.txt", "[ab].txt", "{a,b}.txt", "*.txt", "**"])
def test_a_pattern_to_create_needs_a_change_that_it_matches(pattern: str) -> None:
    assert ledger.compare(claims(("create", pattern)), [created("a.txt")]).holds
    missing = ledger.compare(claims(("create", pattern), ("create", "src/b")), [created("src/b")])
    assert missing.paths(ledger.MISSING) == (() if pattern == "**" else (pattern,))


def test_a_pattern_with_another_verb_too_only_says_where_the_task_may_work() -> None:
    assert ledger.compare(claims(("create", "src/**"), ("modify", "src/**")), []).holds


def test_a_name_with_brackets_is_created_by_a_file_of_exactly_that_name() -> None:
    page = "pages/[id].tsx"
    assert ledger.compare(claims(("create", page)), [created(page)]).holds
    assert ledger.compare(claims(("create", page)), []).paths(ledger.MISSING) == (page,)


def test_without_declarations_no_change_is_allowed() -> None:
    assert ledger.compare(None, [created("a")]).undeclared == ("a",)


def test_protected_paths_stay_protected_even_if_a_person_accepts_undeclared_changes() -> None:
    compared = ledger.compare(
        claims(("create", "src/**")), [created(".git/hooks/x"), created("y")], (), ["y", ".git/hooks/x"]
    )
    assert compared.paths(ledger.PROTECTED) == (".git/hooks/x",)
    assert compared.paths(ledger.DECLARED) == ("y",)


def test_a_name_with_brackets_is_a_literal_name_and_one_with_a_star_is_a_glob() -> None:
    declared = claims(("create", "pages/[id].tsx"), ("modify", "src/*.py"), ("create", "out/"), ("read", "a"))
    assert ledger.named_paths(declared) == ("pages/[id].tsx",)
    assert ledger.written_paths((FileClaim("move", "a", "b"),)) == ("a", "b")


def test_the_rows_of_a_ledger_are_its_files_and_then_its_symbols() -> None:
    other = ledger.Line("lib/a", ledger.UNDECLARED, ledger.MODIFIED, None)
    plain = ledger.Line("b", ledger.DECLARED, ledger.CREATED, "create")
    symbol = ledger.SymbolLine("b.py", "load", ledger.UNDECLARED, ledger.ADDED, None)
    assert ledger.Ledger((other, plain), (symbol,)).as_list() == [
        {"path": "lib/a", "status": "undeclared", "actual": "modified", "declared": None},
        {"path": "b", "status": "declared", "actual": "created", "declared": "create"},
        symbol.as_dict(),
    ]


def test_what_changed_outside_the_project_is_neither_restored_nor_committed() -> None:
    outside = ledger.Line("../b", ledger.PROTECTED, ledger.MODIFIED, None, paths.OUTSIDE)
    inside = ledger.Line("a", ledger.UNDECLARED, ledger.MODIFIED, None)
    compared = ledger.Ledger((inside, outside))
    assert compared.changed == ("a",)
    assert compared.deviations == ("a", "../b")


def _symbols(path: str, before: str | None, after: str | None) -> SymbolSet:
    """`name=text` has a text of its own."""

    def texts(words: str | None) -> Definitions | None:
        return None if words is None else {word.partition("=")[0]: (word,) for word in words.split()}

    return SymbolSet(path, texts(before), texts(after))


def _differences(claims: str | None, *symbol_sets: SymbolSet) -> list[str]:
    declared = None if claims is None else [SymbolClaim(*one.split()) for one in claims.split(", ") if one]
    return [f"{line.status}: {line.actual} {line.name}" for line in ledger.compare_symbols(declared, symbol_sets)]


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


def test_names_of_tests_need_no_declaration_and_others_do() -> None:
    for path, name, status in (
        ("tests/test_a.py", "test_load", "recorded"),
        ("tests/test_a.py", "TestLoad", "recorded"),
        ("src/a.py", "test_load", "undeclared"),
    ):
        change = SymbolSet(path, {}, {name: ("text",), "Load": ("text",)})
        lines = ledger.compare_symbols([SymbolClaim("add", "Load")], [change])
        assert {line.name: line.status for line in lines} == {"Load": "declared", name: status}


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
    compared = ledger.compare_symbols(None, [_symbols("src/config.py", before, after)])
    assert sorted(f"{line.actual} {line.name}" for line in compared) == sorted(lines)
    assert all(line.status == ledger.RECORDED and line.holds for line in compared)


def test_a_file_that_cannot_be_read_is_named_without_declared_symbols() -> None:
    assert _differences(None, _symbols("a.py", "load", None)) == ["not judged: None any"]


def test_many_symbols_are_recorded_by_file_and_shown_in_part() -> None:
    names = " ".join(f"name{number:03}" for number in range(130))
    lines = ledger.compare_symbols(None, [_symbols("a.py", "", names)])
    assert (len(lines), lines[-1].name) == (100, "name099")
    texts = ledger.symbol_texts(lines)
    assert (texts[0], texts[-1], len(texts)) == ("added name000 in a.py", "and 80 more", 21)
