"""What agents say of the work is parsed strictly (R-RUN-3); an opinion counts only with an existing place."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from idumb.domain.plans.plan import Criterion, FileClaim, Task
from idumb.domain.proof import judgement
from idumb.domain.proof.judgement import Citation, Judgement, Opinion, ValidatorEvidence
from idumb.domain.proof.verification import Gap, gaps_of, reachable
from tests.support.cases import every

NO = {"criterion": "SC-1", "holds": False, "why": "no", "citations": [{"file": "a.txt", "line": 1}]}


def test_an_answer_in_another_format_is_not_an_opinion() -> None:
    """R-ADAPT-5."""
    cases: list[dict[str, Any] | None] = [
        None,
        {},
        {"verdict": "GOOD", "judgements": []},
        {"verdict": "PASS"},
        {"verdict": "PASS", "judgements": {"SC-1": True}},
        {"verdict": "PASS", "judgements": [{"criterion": "SC-1", "holds": "no"}]},
        {"verdict": "PASS", "judgements": ["SC-1 holds"]},
        {"verdict": "PASS", "judgements": [{"criterion": 1, "holds": True}]},
    ]
    assert not [answer for answer in cases if judgement.read_opinion(answer) is not None]


def test_a_refutation_must_cite_an_existing_place() -> None:
    """R-ADAPT-5."""
    answer = {"verdict": "FAIL", "judgements": [NO, {**NO, "citations": [{"file": "a.txt", "line": "one"}, 7, {}]}]}
    judgements = judgement.read_opinion(answer)
    assert judgements is not None
    first, second = judgements[1]
    assert second.citations == (Citation("a.txt", 0),)
    assert not first.refutes
    resolved = replace(first, citations=(Citation("a.txt", 1, resolves=True),))
    assert resolved.refutes
    assert not replace(resolved, holds=True).refutes
    assert not Judgement("SC-1", holds=False, why="no").refutes


def test_an_opinion_keeps_its_words_and_places_up_to_a_limit() -> None:
    """R-ADAPT-5: a reply comes from a model, so its size has no limit of its own."""
    places = [{"file": "a.txt", "line": 3}, {"file": "b.txt", "line": True}] * 20
    row = {"criterion": "c" * 3000, "holds": False, "why": "w" * 3000, "citations": places}
    read = judgement.read_opinion({"verdict": "FAIL", "judgements": [row] * 300})
    assert read is not None
    cited = (Citation("a.txt", 3), Citation("b.txt", 0)) * 10
    kept = Judgement("c" * 2000, holds=False, why="w" * 2000, citations=cited)
    assert read == ("FAIL", (kept,) * 200)
    plain = Judgement("SC-1", holds=False, why="", citations=(Citation("a.txt", 1),))
    assert judgement.read_opinion({"verdict": "PASS", "judgements": [{**NO, "why": 7}]}) == ("PASS", (plain,))


def test_what_refutes_is_collected_from_every_opinion() -> None:
    """R-ADAPT-5."""
    doubt = Judgement("SC-2", holds=False, why="no")
    bad = replace(doubt, citations=(Citation("a.txt", 1, resolves=True),))
    opinions = [
        Opinion("verifier", "b", "PASS", (doubt, bad)),
        Opinion("skeptic", "b"),
        Opinion("x", "b", "FAIL", (bad,)),
    ]
    assert judgement.refutations(opinions) == (bad, bad)


def test_each_open_criterion_is_one_gap_and_a_refuted_check_does_not_close_it() -> None:
    """R-ADAPT-5."""
    record = {
        "evidence": [
            {"subject": "SC-1", "text": "a", "result": "failed", "command": "false", "exit_code": 1},
            {"subject": "SC-2", "text": "b", "result": "passed", "command": "true"},
            {"subject": "T1-01 test 1", "text": "a again", "result": "failed", "command": "false", "exit_code": 1},
            {"subject": "roadmap 1", "text": "c", "result": "unproven", "command": None},
            {"subject": "SC-4", "text": "for a person", "result": "waiting", "command": None},
        ],
        "mismatches": [],
        "requirements": [{"id": "REQ-1", "text": "d", "met": False}, {"id": "REQ-2", "text": "e", "met": True}],
        "judged_by": [
            {
                "judgements": [
                    {**NO, "criterion": "SC-2", "citations": [{"file": "x", "line": 1, "resolves": True}]},
                    {"criterion": "SC-3", "holds": False, "why": "no", "citations": []},
                ]
            }
        ],
    }  # fmt: skip
    assert gaps_of(record) == (
        Gap("SC-1", "a", "failed, exit 1", "false"),
        Gap("roadmap 1", "c", "unproven"),
        Gap("REQ-1", "REQ-1: d is met", "no task that is done serves it"),
        Gap("SC-2", "b", "no (x:1)"),
    )


def test_a_task_that_closes_a_gap_may_write_the_phase_s_files() -> None:
    claims = [FileClaim("create", p) for p in ("src/a.py", "src/b.py", "c.txt", "Makefile", "docs/**")]
    assert reachable(claims) == ("src/**", "*.txt", "Makefile*", "docs/**")


TASK = Task(
    "T1-01",
    "t",
    acceptance=(Criterion("AC-1", "It is friendly", "opinion"), Criterion("AC-10", "It is short", "opinion")),
)


def test_places_and_commands_are_read_and_written_in_the_same_form() -> None:
    rows = [{"criterion": "AC-1", "file": "a.py", "line": 3}, {"criterion": "AC-2", "command": "make", "output": "ok"}]
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
