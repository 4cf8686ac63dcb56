"""The verdict on an attempt (R-RUN-3) and on a phase (R-ADAPT-5): a ledger that holds and real proof.

A broken invariant names the task that broke it (R-GATE-3).
"""

from __future__ import annotations

from typing import Any

from idumb.app.attempt import judge, validator
from idumb.app.core import questions
from idumb.app.verify import verdict
from idumb.app.verify.verdict import Verdict
from idumb.domain import agent, outcome
from idumb.domain.action import Answer
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import Criterion, Invariant, Option, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Citation, ValidatorEvidence
from idumb.domain.proof.ledger import Ledger, Line
from tests.support.cases import every
from tests.support.engine_run import EngineRun, task

HOLDS = Ledger((Line("a", "declared", "created", "create"),))


def record_of(result: str, subject: str = "AC-1") -> Evidence:
    return Evidence(subject, "text", result, command="make", exit_code=1, output="boom")


@every(
    "ended, shown, bare",
    [
        (outcome.COMPLETED, "passed", "opinion"),
        (outcome.FAILED, "failed", "failed"),
        (outcome.TIMED_OUT, "timed_out", "timed_out"),
        (outcome.ERRORED, "errored", "errored"),
        (outcome.CANCELLED, "failed", "failed"),
        (outcome.WAITING, "waiting", "waiting"),
    ],
)
def test_only_a_completed_validator_with_evidence_is_a_pass(ended: str, shown: str, bare: str) -> None:
    """R-RUN-3, R-GATE-6: one that timed out never counts as passed."""
    result, cited = agent.AgentResult(ended), (ValidatorEvidence("AC-1", Citation("a", 1)),)
    assert validator.evidence_of("v", result, "tree", shown=cited).result == shown
    assert validator.evidence_of("v", result, "tree").result == bare


def test_an_unusable_answer_neither_proves_nor_fails() -> None:
    """R-RUN-3."""
    record = validator.evidence_of("v", agent.AgentResult(outcome.COMPLETED), "tree", malformed="no verdict")
    assert (record.result, record.text) == (evidence.UNPROVEN, "its answer cannot be used: no verdict")


def test_only_declared_changes_prove_that_work_was_done() -> None:
    """R-RUN-3."""
    task = Task("T1-01", "t", acceptance=(Criterion("AC-1", "a", "changed"), Criterion("AC-2", "b", "check", "true")))
    stray = Ledger((Line("b", "undeclared", "created", None), Line("a", "missing", None, "modify")))
    assert [e.result for e in judge.change_evidence(task, HOLDS, "tree")] == ["passed"]
    assert [e.result for e in judge.change_evidence(task, stray, "tree")] == ["failed"]


def test_a_person_is_asked_once_for_each_criterion_that_only_a_person_can_prove() -> None:
    """R-PLAN-12, R-ASK-1."""
    task = Task(
        "T1-01",
        "t",
        acceptance=(Criterion("AC-1", "a", "check", "true"), Criterion("AC-2", "b", "human", instructions=("look",))),
    )
    pending = questions.criteria(task, 2, ())
    assert [(q.id, q.evidence) for q in pending] == [("T1-01.AC-2.2", ("look",))]
    assert all(choice.consequence for choice in pending[0].choices)


@every(
    "kind, choice, result",
    [
        ("human-verify", "yes", "passed"),
        ("human-verify", "no", "failed"),
        ("human-action", "done", "passed"),
        ("human-action", "not-done", "failed"),
        ("human-verify", "never offered", "failed"),
    ],
)
def test_only_an_offered_choice_that_accepts_proves_something(kind: str, choice: str, result: str) -> None:
    question = questions.work(Task("T1-01", "t", kind=kind), 1)
    assert [e.result for e in questions.evidence_of_answers([question], [Answer(question.id, choice, "me")], None)] == [
        result
    ]


def test_a_decision_task_offers_its_options() -> None:
    """R-PLAN-12."""
    task = Task("T1-01", "t", kind="decision", options=(Option("a", "first"), Option("b", "second")))
    assert [c.id for c in questions.work(task, 1).choices] == ["a", "b"]


def test_an_answer_is_evidence_of_its_criterion_also_in_a_phase_between_two() -> None:
    task = Task("T06.2-01", "Look", acceptance=(Criterion("AC-1", "it reads well", "human"),))
    asked = [*questions.criteria(task, 1, ()), questions.validator(task, 1, ())]
    asked.append(questions.work(task, 1))
    subjects = [proof.subject for proof in questions.evidence_of_answers(asked, (), None)]
    assert subjects == ["AC-1", "validator", "work"]


INVARIANT = Invariant("INV-1", "it says hello", "grep -q hello README")


def planned(*tasks: Task, **fields: Any) -> EngineRun:
    return EngineRun(*tasks, **{"plan": {"invariants": (INVARIANT,)}, **fields})


def breaking(id: str, *needs: str, **fields: Any) -> Task:
    return task(id, *needs, files=["README"], verify=("true",), **fields)


def reason(run: EngineRun, id: str) -> str:
    run.run(max_attempts=1)
    assert run.status()[id] == "failed"
    return run.state.tasks[id].reason


def test_the_task_that_broke_it_is_named() -> None:
    run = planned(task("A"), breaking("B", "A"))
    words = "B broke it"
    assert reason(run, "B") == f"invariant INV-1 failed: {words}"
    assert run.status()["A"] == "completed"  # the invariant holds for honest work
    assert [e.payload["violation"] for e in run.events("evidence.recorded") if "violation" in e.payload] == [words]


def test_an_earlier_task_is_named_if_that_broke_it() -> None:
    """It does not check the invariant."""
    run = planned(task("A"), breaking("B", "A", invariants=()), task("C", "B"))
    assert reason(run, "C") == "invariant INV-1 failed: B broke it"


def test_what_failed_before_the_run_is_no_task_s_fault() -> None:
    """R-RUN-13."""
    gone = Invariant("INV-2", "it runs", "no-such-program")  # which says nothing about the work
    run = planned(task("A"), plan={"invariants": (INVARIANT, gone)})
    run.repository.files["README"] = b"bye"
    run.repository.commit_all("bye")
    words = reason(run, "A")
    assert "it did not hold before the run either" in words
    assert ("INV-2 errored" in words, "INV-2 failed" in words) == (True, False)
    explained = {e.payload["subject"] for e in run.events("evidence.recorded") if "violation" in e.payload}
    assert explained == {"invariant INV-1"}


CONTRACT = Contract("1", "1", (), {}, (), {}, "c" * 64)
DONE = {"T1-01": outcome.COMPLETED}
WEAK = "AC-2 has no proof"


PASSED = record_of(evidence.PASSED)


def test_failures_come_first_then_pending_answers_then_missing_proofs() -> None:
    waiting = record_of(evidence.WAITING, "AC-3")
    cases: list[tuple[list[Evidence], list[str], list[str], Verdict]] = [
        ([PASSED], [], [], Verdict("passed", "every check passed")),
        ([PASSED, record_of(evidence.FAILED, "AC-2"), waiting], [], [], Verdict("failed", "AC-2 failed")),
        ([PASSED], ["b.txt is gone"], [], Verdict("failed", "b.txt is gone")),
        ([waiting], [], [WEAK], Verdict("waiting", "1 criterion waits for your answer")),
        ([PASSED], [], [WEAK], Verdict("partial", WEAK, [WEAK])),
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


def test_a_person_who_accepted_each_task_may_verify_the_phase() -> None:
    """R-RUN-5: otherwise nothing but a further plan would end it."""
    judged = verdict.decide(CONTRACT, [], [], (), {"T1-01": outcome.ACCEPTED}, [])
    unproven = [
        "no task is proven, and the phase itself declares no check",
        "T1-01 was accepted by a person, not proven",
    ]
    assert judged == Verdict("partial", "; ".join(unproven), unproven)


def test_nothing_makes_an_unfinished_run_pass() -> None:
    unfinished = {"T1-02": outcome.BLOCKED}
    partial = verdict.of_unfinished_run(Verdict("passed", "every check passed"), unfinished)
    assert partial == Verdict("partial", "1 task is not done: T1-02 (blocked); every check passed")
    assert verdict.of_unfinished_run(Verdict("failed", "AC-1 failed"), unfinished).status == "failed"


def test_a_requirement_is_met_by_completed_tasks_only() -> None:
    """R-RUN-13."""
    tasks = (task("A", requirements=("REQ-1",)), task("B", requirements=("REQ-2",)))
    texts = {"REQ-1": "one", "REQ-2": "two", "REQ-3": "three"}
    contract = EngineRun(*tasks, plan={"requirements": texts}).contract
    rows = verdict.requirements(contract, {"A": outcome.COMPLETED, "B": outcome.SKIPPED})
    assert {row["id"]: row["met"] for row in rows} == {"REQ-1": True, "REQ-2": False, "REQ-3": False}
