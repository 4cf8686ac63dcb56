"""The confidence that is shown at lock-in, from its parts (R-GATE-6)."""

from __future__ import annotations

from typing import Any

from idumb.domain import contract
from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake import self_check
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, RollbackClass, Task, TestIntent
from idumb.domain.settings import Settings

FILES = (FileClaim("create", "a"),)


def task(number: int, *proofs: str, **more: Any) -> Task:
    criteria = tuple(Criterion(f"AC-{i}", "it holds", p, "true") for i, p in enumerate(proofs, 1))
    return Task(f"T1-{number:02d}", "A task", acceptance=criteria, **{"files": FILES, **more})


def locked_contract(*tasks: Task, **more: Any) -> Contract:
    plan = Plan("p", "0" * 64, "1", "01", "A plan", "A goal", tasks=tasks, **more)
    assembled, findings = contract.assemble("1", "f", (plan,), Settings())
    assert assembled is not None, findings
    return assembled


def finding(severity: str) -> Finding:
    return Finding("a.code", severity, "p", 1, 1, "", "", "", "words")


def judged(
    locked: Contract, *findings: Finding, ready: tuple[str, ...] = (), named: tuple[str, ...] = ()
) -> dict[str, Any]:
    assessment = self_check.assess(locked, findings, ready, named)
    return {"score": assessment.score, **{part.name: part.as_dict() for part in assessment.parts}}


def test_a_plan_fully_proven_by_commands_has_full_confidence() -> None:
    score = judged(
        locked_contract(task(1, "check"), task(2, "verify", verify=("make",))), ready=("steps",), named=("steps",)
    )
    assert score["score"] == 1.0
    assert score["proofs"]["why"] == "2 of 2 criteria and tests are proven by commands"


def test_opinions_and_people_prove_less_than_commands() -> None:
    """R-GATE-6."""
    score = judged(locked_contract(task(1, "check", "opinion", "human", "check")))
    assert score["proofs"]["value"] == 0.5
    assert score["score"] < 1.0


def test_tests_count_among_the_proofs() -> None:
    tested = task(1, "opinion", tests=(TestIntent("make test", "fails", "passes"),))
    assert judged(locked_contract(tested))["proofs"]["value"] == 0.5


def test_each_warning_costs_one_task_s_share_and_errors_cost_nothing() -> None:
    locked = locked_contract(task(1, "check"), task(2, "check"))
    assert judged(locked, finding(WARNING))["checks"]["value"] == 0.5
    assert judged(locked, *[finding(WARNING)] * 5)["checks"]["value"] == 0.0
    assert judged(locked, finding(ERROR))["checks"]["value"] == 1.0


def test_a_part_without_data_has_no_value_and_does_not_count() -> None:
    score = judged(locked_contract(task(1, "check")))
    assert score["coverage"]["value"] is None
    assert score["agents"]["value"] is None
    assert score["score"] == 1.0


def test_requirements_without_a_task_lower_the_coverage() -> None:
    locked = locked_contract(task(1, "check", requirements=("R-1", "R-9")), requirements={"R-1": "", "R-2": ""})
    assert judged(locked)["coverage"] == {
        "name": "coverage", "value": 0.5, "weight": 2, "why": "1 of 2 requirements have a task"
    }  # fmt: skip


def test_undeclared_files_irreversible_tasks_and_missing_agents_lower_it() -> None:
    locked = locked_contract(
        task(1, "check", files=None), task(2, "check", rollback=RollbackClass("irreversible", (), "mail"))
    )
    score = judged(locked, ready=("coder",), named=("coder", "reviewer"))
    assert (score["files"]["value"], score["reversible"]["value"], score["agents"]["value"]) == (0.5, 0.5, 0.5)


def test_the_score_is_the_weighted_mean_of_its_parts() -> None:
    score = judged(locked_contract(task(1, "check", "opinion", requirements=("R-1",)), requirements={"R-1": ""}))
    parts = [score[name] for name in ("checks", "proofs", "coverage", "files", "reversible")]
    mean = sum(p["value"] * p["weight"] for p in parts) / sum(p["weight"] for p in parts)
    assert score["score"] == round(mean, 2) == 0.8
