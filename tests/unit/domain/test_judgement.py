"""A model's opinion on a phase is parsed strictly, and counts only with an existing place."""

from __future__ import annotations

import dataclasses
from typing import Any

from idumb.domain.plans.plan import FileClaim
from idumb.domain.proof import judgement
from idumb.domain.proof.judgement import Citation, Judgement, Opinion
from idumb.domain.proof.verification import Gap, gaps_of, reachable

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
    ]
    assert not [answer for answer in cases if judgement.read_opinion(answer) is not None]


def test_a_refutation_must_cite_an_existing_place() -> None:
    """R-ADAPT-5."""
    answer = {"verdict": "FAIL", "judgements": [NO, {**NO, "citations": [{"file": "a.txt", "line": "one"}, 7]}]}
    judgements = judgement.read_opinion(answer)
    assert judgements is not None
    first, second = judgements[1]
    assert second.citations == (Citation("a.txt", 0),)
    assert not first.refutes
    resolved = dataclasses.replace(first, citations=(Citation("a.txt", 1, resolves=True),))
    assert resolved.refutes
    assert not dataclasses.replace(resolved, holds=True).refutes
    assert not Judgement("SC-1", holds=False, why="no").refutes


def test_an_opinion_keeps_its_words_and_places_up_to_a_limit() -> None:
    """R-ADAPT-5: a reply comes from a model, so its size has no limit of its own."""
    places = [{"file": "a.txt", "line": 3}, {"file": "b.txt", "line": True}] * 20
    row = {"criterion": "c" * 3000, "holds": False, "why": "w" * 3000, "citations": places}
    read = judgement.read_opinion({"verdict": "FAIL", "judgements": [row] * 300})
    assert read is not None
    kept = Judgement(
        "c" * 2000, holds=False, why="w" * 2000, citations=(Citation("a.txt", 3), Citation("b.txt", 0)) * 10
    )
    assert read == ("FAIL", (kept,) * 200)
    assert judgement.read_opinion({"verdict": "PASS", "judgements": [{**NO, "why": 7}]}) == (
        "PASS",
        (Judgement("SC-1", holds=False, why="", citations=(Citation("a.txt", 1),)),),
    )


def test_what_refutes_is_collected_from_every_opinion() -> None:
    """R-ADAPT-5."""
    doubt = Judgement("SC-2", holds=False, why="no")
    bad = dataclasses.replace(doubt, citations=(Citation("a.txt", 1, resolves=True),))
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
