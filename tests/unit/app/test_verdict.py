"""The verdict on a phase (R-ADAPT-5): what fails it, what is pending, and what a person can override."""

from __future__ import annotations

from idumb.app.verify import verdict
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from tests.support.engine_run import EngineRun, task

CONTRACT = Contract("1", "1", (), {}, (), {}, "c" * 64)
DONE = {"T1-01": outcome.COMPLETED}
WEAK = "AC-2 has no proof"


def proof(subject: str, result: str) -> Evidence:
    return Evidence(subject, "It holds", result)


PASSED = proof("AC-1", evidence.PASSED)


def test_failures_come_first_then_pending_answers_then_missing_proofs() -> None:
    waiting = proof("AC-3", evidence.WAITING)
    cases: list[tuple[list[Evidence], list[str], list[str], tuple[str, str, list[str]]]] = [
        ([PASSED], [], [], ("passed", "every check passed", [])),
        ([PASSED, proof("AC-2", evidence.FAILED), waiting], [], [], ("failed", "AC-2 failed", [])),
        ([PASSED], ["b.txt is gone"], [], ("failed", "b.txt is gone", [])),
        ([waiting], [], [WEAK], ("waiting", "1 criterion waits for your answer", [])),
        ([PASSED], [], [WEAK], ("partial", WEAK, [WEAK])),
    ]
    assert not [
        (evidence_list, mismatches, weak, expected)
        for evidence_list, mismatches, weak, expected in cases
        if verdict.decide(CONTRACT, evidence_list, mismatches, (), DONE, weak) != expected
    ]


def test_tasks_without_proof_are_named() -> None:
    statuses = {"T1-01": outcome.ACCEPTED, "T1-02": outcome.SKIPPED}
    status, reason, _ = verdict.decide(CONTRACT, [PASSED], [], (), statuses, [])
    assert (status, reason) == (
        "passed",
        "every check passed; T1-01 was accepted by a person, not proven; T1-02 was skipped",
    )


def test_nothing_makes_an_unfinished_run_pass() -> None:
    unfinished = {"T1-02": outcome.BLOCKED}
    partial = verdict.of_unfinished_run("passed", "every check passed", unfinished)
    assert partial == ("partial", "1 task is not done: T1-02 (blocked); every check passed", [])
    assert verdict.of_unfinished_run("failed", "AC-1 failed", unfinished)[0] == "failed"


def test_a_requirement_is_met_by_completed_tasks_only() -> None:
    """R-RUN-13."""
    tasks = (task("A", requirements=("REQ-1",)), task("B", requirements=("REQ-2",)))
    texts = {"REQ-1": "one", "REQ-2": "two", "REQ-3": "three"}
    contract = EngineRun(*tasks, plan={"requirements": texts}).contract
    rows = verdict.requirements(contract, {"A": outcome.COMPLETED, "B": outcome.SKIPPED})
    assert {row["id"]: row["met"] for row in rows} == {"REQ-1": True, "REQ-2": False, "REQ-3": False}
