"""One check in words and in the log, and what it proves (R-RUN-3)."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from idumb.domain import outcome
from idumb.domain.proof import evidence, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Citation, ValidatorEvidence
from idumb.domain.proof.ledger import Ledger
from tests.support.cases import every

PASSED = Evidence("AC-1", "it holds", evidence.PASSED, command="make", seconds=1.23456)
TOLERATED = Evidence("AC-2", "it failed before as well", evidence.TOLERATED)
LOAD = ledger.SymbolLine("load", "a.py", ledger.DECLARED, ledger.ADDED, "add load")
HOLDS = Ledger((ledger.Line("a.py", ledger.DECLARED, ledger.CREATED, "create"),), (LOAD,))
BROKEN = sorted(evidence.BROKEN)
OTHER_SUBJECTS = (evidence.SECRET, "gate syntax", "limit files", "precondition 1", "test 1 before")


def test_the_log_leaves_out_what_is_empty_or_usual() -> None:
    assert Evidence("AC-1", "it holds", evidence.PASSED, command="make").as_dict() == {
        "subject": "AC-1", "text": "it holds", "result": "passed", "command": "make", "argv": [], "exit_code": None,
        "output": "", "output_sha256": None, "truncated": False, "tree": None, "seconds": 0.0, "cause": None,
    }  # fmt: skip
    assert PASSED.as_dict()["seconds"] == 1.235
    assert [replace(PASSED, level=level).as_dict().get("level") for level in (0, 1, 2)] == [0, None, 2]


def test_of_the_rows_of_a_subject_those_of_the_last_tree_stand_with_their_answer() -> None:
    steps = [Evidence("AC-2", text, evidence.PASSED, tree="new") for text in ("one", "two")]
    earlier = [PASSED, replace(steps[0], tree="old"), replace(TOLERATED, result=evidence.WAITING, tree="new")]
    rows = [proof.as_dict() for proof in (*earlier, *steps, replace(PASSED, tree="new"), PASSED)]
    assert evidence.standing(rows) == [rows[-1], rows[3], rows[4]]


def test_the_log_has_everything_else_but_what_a_check_may_need() -> None:
    shown = (ValidatorEvidence("AC-1", Citation("a", 1)),)
    lists = {"argv": ("make",), "weaker": ("w",), "locations": ("l",), "changed_programs": ("e",), "changed": ("c",)}
    texts = {"control": "failed", "violation": "v", "sandbox": "none"}
    row = replace(PASSED, shown=shown, may_need="a network", **lists, **texts).as_dict()
    assert {name: row[name] for name in (*lists, *texts)} == {**{k: list(v) for k, v in lists.items()}, **texts}
    assert row["shown"] == [one.as_dict() for one in shown]
    assert "may_need" not in row


@every(
    "changes, words",
    [
        ({}, "AC-1 passed"),
        ({"changed": ("a",)}, "AC-1 passed"),
        ({"changed": ("a",), "exit_code": 0, "result": evidence.FAILED}, "AC-1 changed a, which it should judge"),
        ({"changed": ("a",), "exit_code": 1, "result": evidence.FAILED}, "AC-1 failed"),
        ({"exit_code": 0, "result": evidence.FAILED}, "AC-1 failed"),
        ({"result": evidence.FAILED, "may_need": "a network"}, "AC-1 failed (it may need a network)"),
        ({"result": evidence.FAILED, "violation": "T1-02 broke it"}, "AC-1 failed: T1-02 broke it"),
    ],
)
def test_a_result_is_said_with_its_cause(changes: dict[str, object], words: str) -> None:
    assert replace(PASSED, **changes).words == words


def test_a_tolerated_failure_counts_as_proof_and_is_named() -> None:
    assert evidence.verdict(HOLDS, [PASSED, TOLERATED]) == (outcome.PASS, TOLERATED.text)
    assert evidence.verdict(HOLDS, [TOLERATED]) == (outcome.PASS, TOLERATED.text)
    broken = replace(PASSED, result=evidence.FAILED)
    assert evidence.verdict(HOLDS, [TOLERATED, broken]) == (outcome.PARTIAL, "AC-1 failed")


@every(
    "proof, real",
    [
        (PASSED, True),
        (TOLERATED, True),
        *((replace(PASSED, subject=subject), False) for subject in OTHER_SUBJECTS),
        *((replace(PASSED, result=result), False) for result in (*BROKEN, "waiting", "unproven", "opinion")),
    ],
)
def test_only_passed_and_tolerated_checks_of_the_work_prove_it(proof: Evidence, *, real: bool) -> None:
    """R-RUN-3, R-GATE-1."""
    assert evidence.proves([proof]) is real
    assert (evidence.verdict(HOLDS, [proof])[0] == outcome.PASS) is real


@every("result, level", itertools.product(BROKEN, (1, 2)))
def test_one_failed_errored_or_timed_out_check_keeps_a_task_from_completing(result: str, level: int) -> None:
    """R-GATE-6: a timed-out check never counts as passed, and one of a gate or role blocks like any other."""
    broken = replace(PASSED, subject="validator reviewer", result=result, level=level)
    assert evidence.verdict(HOLDS, [broken])[0] == outcome.FAIL
    assert evidence.verdict(HOLDS, [PASSED, broken])[0] == outcome.PARTIAL


@every("result", [evidence.PASSED, *BROKEN])
def test_level_0_neither_blocks_nor_proves(result: str) -> None:
    """R-GATE-6, R-GATE-1: it is reported."""
    optional = replace(PASSED, subject="validator reviewer", result=result, level=0)
    assert evidence.verdict(HOLDS, [PASSED, optional])[0] == outcome.PASS
    assert evidence.verdict(HOLDS, [optional]) == (outcome.FAIL, "nothing proves this task")
    assert not evidence.proves([optional])


def test_an_unanswered_question_waits_unless_something_failed() -> None:
    asked = replace(PASSED, subject="AC-2", result=evidence.WAITING)
    assert evidence.verdict(HOLDS, [PASSED, asked])[0] == evidence.WAITING
    assert evidence.verdict(HOLDS, [replace(PASSED, result=evidence.FAILED), asked])[0] == outcome.FAIL


def test_the_first_failed_proofs_are_named_and_the_rest_counted() -> None:
    """R-GATE-1: of a gate, with what it found."""
    failed = [replace(PASSED, subject=f"AC-{number}", result=evidence.FAILED) for number in range(1, 8)]
    assert evidence.verdict(HOLDS, failed)[1].endswith(", AC-5 failed and 2 more")
    gate = replace(failed[0], subject="gate syntax", output="a.py:1: no\nb.py:1: no")
    assert evidence.verdict(HOLDS, [PASSED, gate]) == (outcome.PARTIAL, "gate syntax failed: a.py:1: no …")


def test_what_a_ledger_complains_about_is_said_in_full() -> None:
    stray = replace(LOAD, name="save", status=ledger.UNDECLARED, declared=None)
    lines = (
        ledger.Line("a", ledger.MISSING, None, "create"),
        ledger.Line("b", ledger.MISMATCH, ledger.CREATED, "modify"),
        ledger.Line(".env", ledger.PROTECTED, ledger.DELETED, None, ".env"),
        ledger.Line("d", ledger.UNDECLARED, ledger.CREATED, None),
        ledger.Line("e", ledger.DECLARED, ledger.CREATED, "create"),
    )
    words = (
        "a was declared (create) and did not change",
        "b was created, declared modify",
        ".env is protected by .env and was deleted",
        "d was created and is not declared",
        stray.words,
    )
    compared = Ledger(lines, (LOAD, stray))
    assert evidence.verdict(compared, [PASSED]) == (outcome.FAIL, "; ".join(words))
    assert evidence.feedback("It failed", compared, [PASSED]).splitlines() == ["It failed", *words]


def test_feedback_names_the_check_its_command_and_the_end_of_its_output() -> None:
    """R-RUN-5."""
    failed = replace(PASSED, result=evidence.FAILED, exit_code=1, output="a" * 9 + "b" * 1998 + "c\n")
    lines = ["AC-1 failed", "AC-1 (it holds): failed, exit 1", "$ make", "b" * 1998 + "c"]
    assert evidence.feedback("AC-1 failed", HOLDS, [failed, TOLERATED]).splitlines() == lines
