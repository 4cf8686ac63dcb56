"""`docs/requirements.md` says what works; a row may say so only where a test proves it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest

from tests.meta import source

REQUIREMENTS = source.ROOT / "docs" / "requirements.md"
SPECIFICATION = source.ROOT.parent / "shared" / "spec" / "requirements.md"
STATES = ("done", "partly", "not yet")
ID = re.compile(r"R-[A-Z]+-\d+")


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    text: str
    state: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    found = []
    for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| R-"):
            assert len(cells) == 4, line
            found.append(Row(cells[0], cells[1], cells[2], tuple(re.findall(r"`([^`]+)`", cells[3]))))
    return found


@cache
def ids_named_in(name: str) -> frozenset[str]:
    place = source.ROOT / name
    files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    return frozenset(i for file in files for i in ID.findall(file.read_text(encoding="utf-8")))


def test_every_row_has_a_known_state_and_an_id_of_its_own() -> None:
    assert {row.state for row in rows()} <= set(STATES)
    ids = [row.id for row in rows()]
    assert len(ids) == len(set(ids))


def test_the_list_has_all_ids_of_the_specification() -> None:
    if not SPECIFICATION.exists():
        pytest.skip("the specification is not beside this repository")
    specified = re.findall(r"^\| (R-[A-Z]+-\d+) \|", SPECIFICATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row.id for row in rows()] == specified


@pytest.mark.parametrize("row", [row for row in rows() if row.tests or row.state == "done"], ids=lambda row: row.id)
def test_a_row_that_works_is_named_by_the_tests_beside_it(row: Row) -> None:
    assert row.tests, f"{row.id} is {row.state}: which test owns it?"
    for name in row.tests:
        assert (source.ROOT / name).exists(), f"{row.id}: there is no {name}"
        assert row.id in ids_named_in(name), f"{name} does not name {row.id}"


def test_tests_name_only_ids_that_exist() -> None:
    known = {row.id for row in rows()}
    named = {i for place in source.python_files("tests") for i in ID.findall(place.read_text(encoding="utf-8"))}
    assert named - known == set()
