"""The gates `agreement` and `completion`: contradictions in recorded evidence, and what is open at the end."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace

from idumb.domain.plans.plan import Criterion, Interface, SymbolClaim, Task, TestIntent
from idumb.domain.proof import evidence, verification
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Deadline
from idumb.domain.proof.judgement import Citation, Judgement, Opinion
from tests.support.cases import every

FIRST = Task("T1-01", "First", symbols=(SymbolClaim("add", "load"),))
SECOND = Task("T1-02", "Second", interfaces=(Interface("save"),))
PROVEN = Task(
    "T1-01",
    "Proven",
    acceptance=(Criterion("AC-1", "it holds", "check", "true"),),
    tests=(TestIntent("make test", "fails", "passes"),),
)
ADDED = "added load in src/a.py"


def judge(
    *tasks: Task,
    changed: dict[str, list[str]] | None = None,
    touched: dict[str, list[str]] | None = None,
    rows: dict[str, list[dict[str, Any]]] | None = None,
    final: tuple[Evidence, ...] = (),
    opinions: tuple[Opinion, ...] = (),
) -> tuple[str, ...]:
    named = {task.id: task for task in tasks}
    paths = touched or {task: [] for task in named}
    return verification.contradictions(tasks, changed or {}, paths, rows or {}, final, opinions)


@every(
    "first, second, words",
    [
        ([ADDED], ["removed load in src/a.py"], ["T1-01 declares that it adds load in src/a.py, and T1-02 removed it"]),
        (
            [ADDED],
            ["removed Store.save in a.go", "added x in a.go"],
            ["T1-02 declares the interface Store.save, and its ledger has Store.save in a.go as removed"],
        ),
        ([ADDED], ["removed load in src/b.py", "changed load in src/a.py"], []),
        ([ADDED], ["removed load in src/a.py", "added load in src/a.py"], []),
        ([ADDED], ["added save in a.go", "and 3 more"], []),
    ],
)
def test_a_promised_name_that_a_task_removed_undeclared_is_named(
    first: list[str], second: list[str], words: list[str]
) -> None:
    """R-GATE-2: plan and ledger."""
    lines = judge(FIRST, SECOND, changed={"T1-01": first, "T1-02": second})
    assert len(lines) == len(words)
    assert all(line.startswith(word) for line, word in zip(lines, words, strict=True))


def test_one_of_several_interfaces_that_a_task_removed_is_named() -> None:
    both = Task("T1-02", "Both", interfaces=(Interface("save"), Interface("load")))
    (line,) = judge(both, changed={"T1-02": ["removed load in a.go"]})
    assert line == "T1-02 declares the interface load, and its ledger has load in a.go as removed"


def test_a_declared_removal_contradicts_nothing() -> None:
    second = Task("T1-02", "Second", symbols=(SymbolClaim("remove", "load"),))
    assert judge(FIRST, second, changed={"T1-01": [ADDED], "T1-02": ["removed load in src/a.py"]}) == ()


def final(test: str, criterion: str) -> tuple[Evidence, ...]:
    return (
        Evidence("T1-01 test 1", "", test),
        Evidence("T1-01 AC-1", "", criterion),
        Evidence("T1-01 verify 1", "", test),
    )


@every(
    "test, criterion, lines",
    [
        (evidence.PASSED, evidence.FAILED, ("T1-01 test 1 passes on the final tree, and T1-01 AC-1 does not",)),
        (evidence.ERRORED, evidence.PASSED, ("T1-01 AC-1 passes on the final tree, and T1-01 test 1 does not",)),
        (evidence.PASSED, evidence.PASSED, ()),
        (evidence.FAILED, evidence.FAILED, ()),
        (evidence.PASSED, evidence.OPINION, ()),
    ],
)
def test_tests_and_criteria_of_a_task_have_the_same_result(test: str, criterion: str, lines: tuple[str, ...]) -> None:
    assert judge(PROVEN, final=final(test, criterion)) == lines


@every(
    "control, lines",
    [
        (evidence.PASSED, ("T1-01: its tests failed before the work, and AC-1 already passed there",)),
        (evidence.FAILED, ()),
        ("not run: it had not ended", ()),
    ],
)
def test_a_criterion_that_passed_while_the_tests_failed_is_named(control: str, lines: tuple[str, ...]) -> None:
    rows = [
        {"subject": "AC-1", "result": evidence.PASSED, "control": control},
        {"subject": "test 1 after", "result": evidence.PASSED},
    ]
    assert judge(PROVEN, rows={"T1-01": rows}) == lines


def test_tests_that_did_not_run_or_do_not_all_pass_contradict_no_criterion() -> None:
    early = {"subject": "AC-1", "result": evidence.PASSED, "control": evidence.PASSED}
    assert judge(PROVEN, rows={"T1-01": [early]}) == ()
    mixed = Evidence("T1-01 test 2", "", evidence.FAILED)
    assert judge(PROVEN, final=(*final(evidence.PASSED, evidence.FAILED), mixed)) == ()


def opinion(role: str, *, holds: bool, file: str = "a.py", resolves: bool = True) -> Opinion:
    judgement = Judgement("AC-1", holds, "", (Citation(file, 3, resolves),))
    return Opinion(role, "judge", "PASS" if holds else "FAIL", (judgement,))


VALIDATED = {"T1-01": [{"subject": "validator strict", "result": evidence.PASSED}]}


def test_validator_verifier_and_skeptic_that_disagree_are_named() -> None:
    cases: list[tuple[tuple[Opinion, ...], tuple[str, ...]]] = [
        (
            (opinion("skeptic", holds=False),),
            ("the validator passed T1-01, and the skeptic refutes AC-1 at a.py:3",),
        ),
        (
            (opinion("verifier", holds=True), opinion("skeptic", holds=False, file="b.go")),
            ("the verifier says that AC-1 holds, and the skeptic that it does not",),
        ),
        ((opinion("verifier", holds=False, file="a.py"), opinion("skeptic", holds=False, file="b.go")),
         ("the validator passed T1-01, and the verifier refutes AC-1 at a.py:3",)),
        ((opinion("skeptic", holds=False, resolves=False),), ()),
        ((opinion("skeptic", holds=False, file="b.go"),), ()),
        ((opinion("verifier", holds=True), opinion("skeptic", holds=True)), ()),
    ]  # fmt: skip
    assert not [
        (opinions, lines)
        for opinions, lines in cases
        if judge(PROVEN, touched={"T1-01": ["a.py"]}, rows=VALIDATED, opinions=opinions) != lines
    ]


def test_only_a_validator_of_the_task_that_passed_is_contradicted() -> None:
    refuted = (opinion("skeptic", holds=False),)
    for rows, count in (
        ([{"subject": "AC-1", "result": evidence.PASSED}], 0),
        ([{"subject": "validator strict", "result": evidence.UNPROVEN}], 0),
        ([{"subject": "AC-1", "result": evidence.FAILED}, *VALIDATED["T1-01"]], 1),
    ):
        lines = judge(PROVEN, touched={"T1-01": ["a.py"]}, rows={"T1-01": rows}, opinions=refuted)
        assert len(lines) == count, rows


def test_opinions_contradict_one_another_about_one_criterion_and_between_two_roles() -> None:
    no, yes = opinion("skeptic", holds=False), opinion("verifier", holds=True)
    other = replace(yes, judgements=(replace(yes.judgements[0], criterion="AC-2"),))
    lower = replace(yes, judgements=(replace(yes.judgements[0], criterion="ac-1"),))
    both = replace(no, judgements=(*no.judgements, *yes.judgements))
    assert judge(PROVEN, opinions=(no, other)) == judge(PROVEN, opinions=(both,)) == ()
    assert judge(PROVEN, opinions=(no, lower)) == (
        "the verifier says that ac-1 holds, and the skeptic that it does not",
    )
    reverse = judge(PROVEN, opinions=(opinion("verifier", holds=False), opinion("skeptic", holds=True)))
    assert reverse == ("the skeptic says that AC-1 holds, and the verifier that it does not",)


@every(
    "row, lines",
    [
        ({"level": 2, "result": "unproven"}, ("T1-01 has an open warning: gate change-class is unproven",)),
        ({"result": "unproven"}, ("T1-01 has an open warning: gate change-class is unproven",)),
        (
            {"result": "unproven", "output": "unknown whether it breaks a caller\nmore"},
            ("T1-01 has an open warning: gate change-class is unproven: unknown whether it breaks a caller",),
        ),
        ({"result": "timed_out"}, ("T1-01 has an open warning: gate change-class is timed out",)),
        ({"level": 0, "result": "failed"}, ()),
        ({"result": "passed"}, ()),
        ({"result": "failed"}, ("T1-01 has an open warning: gate change-class is failed",)),
    ],
)
def test_a_gate_of_level_1_or_2_that_is_not_passed_is_open(row: dict[str, Any], lines: tuple[str, ...]) -> None:
    """R-RUN-14: no warning is unresolved at completion. R-GATE-4: nor is an unknown class of a change."""
    rows = {"T1-01": [{"subject": "gate change-class", **row}]}
    assert verification.unproven_work([PROVEN], rows) == lines


@every(
    "more, lines",
    [
        ({}, ("T1-01 AC-1 has no proof", "T1-01 AC-2 is covered only by an opinion")),
        ({"validator judge": {"shown": [{"criterion": "AC-2"}]}}, ("T1-01 AC-1 has no proof",)),
        ({"validator judge": {"shown": [{"criterion": "AC-1: it scales"}, {"criterion": "AC-2"}]}}, ()),
        ({"validator judge": {"shown": [{"criterion": "AC-1"}, {"criterion": "AC-2"}], "result": "failed"}},
         ("T1-01 AC-1 has no proof", "T1-01 AC-2 is covered only by an opinion")),
        ({"validator": {}}, ()),
    ],
)  # fmt: skip
def test_a_criterion_is_open_unless_a_check_a_validator_or_a_person_proves_it(
    more: dict[str, dict[str, Any]], lines: tuple[str, ...]
) -> None:
    """R-RUN-13: nothing counts as proof by default."""
    criteria = (Criterion("AC-1", "it scales", "unproven"), Criterion("AC-2", "it reads well", "opinion"))
    rows = [{"subject": "AC-1", "result": "unproven"}, {"subject": "AC-2", "result": "opinion"}]
    rows += [{"subject": subject, "result": "passed", **row} for subject, row in more.items()]
    assert verification.unproven_work([replace(PROVEN, acceptance=criteria)], {"T1-01": rows}) == lines


def test_evidence_that_was_not_compared_in_time_is_named() -> None:
    """R-GATE-1: the time is over after the first part."""
    times = itertools.count(0.0, 40.0)
    deadline = Deadline.after(60, lambda: next(times))
    found = verification.contradictions((FIRST,), {}, {FIRST.id: []}, {}, (), (), deadline)
    assert found == ("the evidence was not compared within 60s (gate agreement)",)
