"""A validator's evidence for its PASS: parsing, and the criteria that it covers (R-RUN-3)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain.plans.plan import Criterion, Task
from idumb.domain.proof import judgement
from idumb.domain.proof.judgement import Citation, ValidatorEvidence
from tests.support.cases import every

TASK = Task(
    "T1-01",
    "t",
    acceptance=(Criterion("AC-1", "It is friendly", "opinion"), Criterion("AC-10", "It is short", "opinion")),
)


def test_places_and_commands_are_read_and_written_in_the_same_form() -> None:
    rows = [
        {"criterion": "AC-1", "file": "a.py", "line": 3},
        {"criterion": "AC-2", "command": "make", "output": "ok"},
    ]
    evidence = judgement.read_evidence({"evidence": rows})
    assert evidence == (
        ValidatorEvidence("AC-1", Citation("a.py", 3)),
        ValidatorEvidence("AC-2", command="make", output="ok"),
    )
    assert [one.as_dict() for one in evidence] == rows


def test_evidence_names_its_place_or_its_command() -> None:
    assert ValidatorEvidence("AC-1", Citation("a.py", 3)).words == "AC-1 by a.py:3"
    assert ValidatorEvidence("AC-1", command="make").words == "AC-1 by `make`"


def test_more_evidence_than_is_read_is_refused_and_long_texts_are_cut() -> None:
    row = {"criterion": "c" * 3000, "command": "m" * 3000, "output": "o" * 3000}
    cut = ValidatorEvidence("c" * 2000, command="m" * 2000, output="o" * 2000)
    assert judgement.read_evidence({"evidence": [row] * 200}) == (cut,) * 200
    assert "the limit is 200" in judgement.read_evidence({"evidence": [row] * 201})
    place = {"criterion": "AC-1", "file": "f" * 3000, "line": 1}
    assert judgement.read_evidence({"evidence": [place]}) == (ValidatorEvidence("AC-1", Citation("f" * 2000, 1)),)


@every("rows", [None, [], [{"criterion": "AC-1", "command": "make", "output": " \n"}]])
def test_missing_evidence_and_a_command_without_output_are_none(rows: Any) -> None:
    assert judgement.read_evidence({"evidence": rows}) == ()


@every(
    "row",
    [
        "a.py:3",
        {},
        {"file": "a.py", "line": 3},
        {"criterion": " ", "file": "a.py", "line": 3},
        {"criterion": "AC-1"},
        {"criterion": "AC-1", "file": "a.py"},
        {"criterion": "AC-1", "file": "a.py", "line": "3"},
        {"criterion": "AC-1", "file": "a.py", "line": True},
        {"criterion": "AC-1", "command": "make"},
        {"criterion": "AC-1", "command": " ", "output": "ok"},
        {"criterion": "AC-1", "file": "a.py", "command": "make", "output": "ok"},
    ],
)
def test_evidence_in_another_format_is_reported_by_its_number(row: object) -> None:
    good = {"criterion": "AC-1", "file": "a.py", "line": 3}
    assert "evidence 2" in str(judgement.read_evidence({"evidence": [good, row]}))


_PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_ROW = st.dictionaries(st.sampled_from(["criterion", "file", "line", "command", "output"]), _PLAIN | st.lists(_PLAIN))


@given(_PLAIN | _ROW | st.lists(_PLAIN | _ROW, max_size=3))
def test_every_input_is_read_or_reported(value: Any) -> None:
    assert isinstance(judgement.read_evidence({"evidence": value}), str | tuple)


def test_evidence_counts_for_the_criterion_that_it_names() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("AC-1", {"AC-1"}),
        ("ac-1: it is", {"AC-1"}),
        ("it is  friendly", {"AC-1"}),
        ("AC-10", {"AC-10"}),
        ("AC-100", set()),
        ("AC-1 0", {"AC-1"}),
        ("AC-1x-y", set()),
        ("zebra", set()),
        ("everything", set()),
    ]
    assert not [
        (subject, criteria) for subject, criteria in cases if judgement.proven_criteria(TASK, (subject,)) != criteria
    ]
