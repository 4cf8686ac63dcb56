"""`docs/requirements.md` divides each requirement into clauses; a working clause names an existing test."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from tests.meta import source

REQUIREMENTS = source.ROOT / "docs" / "requirements.md"
SPECIFICATION = source.ROOT.parent / "shared" / "spec" / "requirements.md"
ID = re.compile(r"R-[A-Z]+-\d+")
HEADING = re.compile(r"^### (R-[A-Z]+-\d+) · (done|partly|not yet)$")


@dataclass(frozen=True, slots=True)
class Clause:
    """`works` is `yes`, `no` or `part: what is missing`; a test is `file::function`."""

    text: str
    works: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    state: str
    clauses: tuple[Clause, ...]

    @property
    def state_of_clauses(self) -> str:
        works = {clause.works for clause in self.clauses}
        if works == {"yes"}:
            return "done"
        return "not yet" if works == {"no"} else "partly"


@cache
def rows() -> tuple[Row, ...]:
    sections: list[tuple[str, str, list[Clause]]] = []
    for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            heading = HEADING.match(line)
            assert heading, line
            sections.append((heading[1], heading[2], []))
        elif sections and line.startswith("| ") and not line.startswith("| clause |"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            assert len(cells) == 3, line
            sections[-1][2].append(Clause(cells[0], cells[1], tuple(re.findall(r"`([^`]+)`", cells[2]))))
    return tuple(Row(name, state, tuple(clauses)) for name, state, clauses in sections)


@cache
def text_of(name: str) -> str:
    return (source.ROOT / name).read_text(encoding="utf-8")


@cache
def functions_in(name: str) -> frozenset[str]:
    tree = ast.parse(text_of(name))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_the_list_has_all_ids_of_the_specification() -> None:
    if not SPECIFICATION.exists():
        pytest.skip("the specification is not beside this repository")
    specified = re.findall(r"^\| (R-[A-Z]+-\d+) \|", SPECIFICATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row.id for row in rows()] == specified


def test_every_id_has_one_section() -> None:
    assert [name for name, times in Counter(row.id for row in rows()).items() if times > 1] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_the_state_of_a_requirement_follows_from_its_clauses(row: Row) -> None:
    assert row.clauses, f"{row.id} has no clause"
    wrong = [clause for clause in row.clauses if not re.fullmatch(r"yes|no|part: .+", clause.works)]
    assert wrong == []
    assert row.state == row.state_of_clauses


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_working_clause_names_an_existing_test(row: Row) -> None:
    for clause in row.clauses:
        assert clause.tests or clause.works != "yes", f"{row.id}, {clause.text}: which test owns it?"
        for test in clause.tests:
            file, _, function = test.partition("::")
            assert (source.ROOT / file).is_file(), f"{row.id}: there is no {file}"
            if function or clause.works == "yes":
                assert function in functions_in(file), f"{row.id}: there is no {test}"
            assert row.id in text_of(file), f"{file} does not name {row.id}"


def test_tests_name_only_ids_that_exist() -> None:
    ids = {row.id for row in rows()}
    named = {i for place in source.python_files("tests") for i in ID.findall(place.read_text(encoding="utf-8"))}
    assert named - ids == set()
