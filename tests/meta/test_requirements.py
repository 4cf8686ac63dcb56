"""`clauses.md` divides each requirement of docs/requirements.md; a working clause names what proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.meta import source

PAGE = source.ROOT / "docs" / "requirements.md"
CLAUSES = source.ROOT / "tests" / "meta" / "clauses.md"
ID = re.compile(r"R-[A-Z]+-\d+")
_WORKS = re.compile(r"yes|no|part: .+")
_ROW = re.compile(r"^\| (R-[A-Z]+-\d+) \| (done|partly|not yet) \|.*\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Clause:
    """`works` is `yes`, `no` or `part: what is missing`; `tests` are names of tests, or a file of benchmarks."""

    text: str
    works: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    clauses: tuple[Clause, ...]

    @property
    def state(self) -> str:
        works = {clause.works for clause in self.clauses}
        if works == {"yes"}:
            return "done"
        return "not yet" if works == {"no"} else "partly"


@cache
def rows() -> tuple[Row, ...]:
    sections: list[tuple[str, list[Clause]]] = []
    for line in CLAUSES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), []))
        elif sections and line.startswith("| ") and not line.startswith("| clause |"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            assert len(cells) == 3, line
            sections[-1][1].append(Clause(cells[0], cells[1], tuple(re.findall(r"`([^`]+)`", cells[2]))))
    return tuple(Row(name, tuple(clauses)) for name, clauses in sections)


@cache
def places() -> Mapping[str, Sequence[str]]:
    """The text of the file or files that have a test, by the name of the test; it stands at the margin."""
    found: dict[str, list[str]] = {}
    for place in source.python_files("tests"):
        text = source.text(place)
        for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE):
            found.setdefault(name, []).append(text)
    return found


SIZES = {
    "PLAN": 12,
    "LOCK": 9,
    "RUN": 16,
    "GIT": 8,
    "LOG": 9,
    "ASK": 3,
    "GATE": 6,
    "ENV": 3,
    "ADAPT": 7,
    "HAND": 3,
    "OPS": 7,
}
"""How many requirements each family has; none is dropped by accident."""


def test_each_family_has_its_requirements_in_order_and_once() -> None:
    families: dict[str, list[int]] = {}
    for row in rows():
        family, _, number = row.id.rpartition("-")
        families.setdefault(family, []).append(int(number))
    assert {
        family: numbers for family, numbers in families.items() if numbers != list(range(1, len(numbers) + 1))
    } == {}
    assert {family.removeprefix("R-"): len(numbers) for family, numbers in families.items()} == SIZES


def test_the_page_has_each_requirement_in_the_state_that_follows_from_its_clauses() -> None:
    assert _ROW.findall(PAGE.read_text(encoding="utf-8")) == [(row.id, row.state) for row in rows()]
    assert [row.id for row in rows() for clause in row.clauses if not _WORKS.fullmatch(clause.works)] == []


def test_a_working_clause_names_an_existing_test_or_a_benchmark() -> None:
    clauses = [(row, clause) for row in rows() for clause in row.clauses]
    unproven = [f"{row.id}, {clause.text}" for row, clause in clauses if clause.works == "yes" and not clause.tests]
    assert unproven == []
    wrong = [f"{row.id}: {test}" for row, clause in clauses for test in clause.tests if not proves(row, test)]
    assert wrong == [], "there is no such test, there are two, or its file does not name the requirement"


def proves(row: Row, test: str) -> bool:
    if test.startswith("bench/"):
        return row.id in source.text(source.ROOT / test)
    files = places().get(test, ())
    return len(files) == 1 and row.id in files[0]


def test_tests_name_only_ids_that_exist() -> None:
    ids = {row.id for row in rows()}
    named = {i for place in source.python_files("tests") for i in ID.findall(source.text(place))}
    assert named - ids == set()
