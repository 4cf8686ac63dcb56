"""R-GIT-5: symbols declared against symbols found."""

from __future__ import annotations

import pytest

from idumb.domain.plans.plan import SymbolClaim
from idumb.domain.proof import symbols
from idumb.domain.proof.symbols import SymbolSet


def _symbols(path: str, before: str | None, after: str | None) -> SymbolSet:
    def names(text: str | None) -> frozenset[str] | None:
        return None if text is None else frozenset(text.split())

    return SymbolSet(path, names(before), names(after))


def _differences(claims: str, *symbol_sets: SymbolSet) -> list[str]:
    declared = [SymbolClaim(*one.split()) for one in claims.split(", ") if one]
    return [f"{line.status}: {line.actual} {line.name}" for line in symbols.compare(declared, symbol_sets)]


@pytest.mark.parametrize(
    ("claims", "before", "after", "problems"),
    [
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
        ("add load()", "", "load _helper", ["declared: added load"]),
        ("add _helper", "", "_helper", ["declared: added _helper"]),
        ("add test_*", "", "test_a test_b", ["declared: added test_a", "declared: added test_b"]),
        ("add config.load", "", "load", ["declared: added load"]),
    ],
)
def test_each_name_is_declared_undeclared_or_missing(claims: str, before: str, after: str, problems: list[str]) -> None:
    assert _differences(claims, _symbols("src/config.py", before, after)) == problems


def test_a_name_moved_to_another_file_is_neither_added_nor_removed() -> None:
    assert _differences("", _symbols("a.py", "load", ""), _symbols("b.py", "", "load")) == []


def test_a_declared_name_may_be_in_an_unreadable_file() -> None:
    problems = _differences("add load, add save", _symbols("a.lua", None, None), _symbols("b.py", "", "save"))
    assert problems == ["not judged: None load", "declared: added save", "not judged: None any"]
