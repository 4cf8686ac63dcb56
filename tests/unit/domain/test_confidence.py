"""The confidence that is shown at lock-in, from its parts (R-GATE-6)."""

from __future__ import annotations

from typing import Any

from idumb.domain import confidence, contract
from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, RollbackClass, Task, TestIntent
from idumb.domain.settings import Settings

FILES = (FileClaim("create", "a"),)


def task(number: int, *proofs: str, **more: Any) -> Task:
    criteria = tuple(Criterion(f"AC-{i}", "it holds", p, "true") for i, p in enumerate(proofs, 1))
    return Task(f"T1-{number:02d}", "A task", acceptance=criteria, **{"files": FILES, **more})


def made(*tasks: Task, **more: Any) -> Contract:
    plan = Plan("p", "0" * 64, "1", "01", "A plan", "A goal", tasks=tasks, **more)
    found, findings = contract.assemble("1", "f", (plan,), Settings())
    assert found is not None, findings
    return found


def finding(severity: str) -> Finding:
    return Finding("a.code", severity, "p", 1, 1, "", "", "", "words")


def judged(
    known: Contract, *findings: Finding, ready: tuple[str, ...] = (), named: tuple[str, ...] = ()
) -> dict[str, Any]:
    found = confidence.assess(known, findings, ready, named)
    return {"score": found.score, **{part.name: part.as_dict() for part in found.parts}}


def test_a_plan_fully_proven_by_commands_has_full_confidence() -> None:
    found = judged(made(task(1, "check"), task(2, "verify", verify=("make",))), ready=("steps",), named=("steps",))
    assert found["score"] == 1.0
    assert found["proofs"]["why"] == "2 of 2 criteria and tests are proven by commands"


def test_opinions_and_people_prove_less_than_commands() -> None:
    """R-GATE-6."""
    found = judged(made(task(1, "check", "opinion", "human", "check")))
    assert found["proofs"]["value"] == 0.5
    assert found["score"] < 1.0


def test_tests_count_among_the_proofs() -> None:
    tested = task(1, "opinion", tests=(TestIntent("make test", "fails", "passes"),))
    assert judged(made(tested))["proofs"]["value"] == 0.5


def test_each_warning_costs_one_task_s_share_and_errors_cost_nothing() -> None:
    known = made(task(1, "check"), task(2, "check"))
    assert judged(known, finding(WARNING))["checks"]["value"] == 0.5
    assert judged(known, *[finding(WARNING)] * 5)["checks"]["value"] == 0.0
    assert judged(known, finding(ERROR))["checks"]["value"] == 1.0


def test_a_part_without_data_has_no_value_and_does_not_count() -> None:
    found = judged(made(task(1, "check")))
    assert found["coverage"]["value"] is None
    assert found["agents"]["value"] is None
    assert found["score"] == 1.0


def test_requirements_without_a_task_lower_the_coverage() -> None:
    known = made(task(1, "check", requirements=("R-1", "R-9")), requirements={"R-1": "", "R-2": ""})
    assert judged(known)["coverage"] == {
        "name": "coverage", "value": 0.5, "weight": 2, "why": "1 of 2 requirements have a task"
    }  # fmt: skip


def test_undeclared_files_irreversible_tasks_and_missing_agents_lower_it() -> None:
    known = made(task(1, "check", files=None), task(2, "check", rollback=RollbackClass("irreversible", (), "mail")))
    found = judged(known, ready=("coder",), named=("coder", "reviewer"))
    assert (found["files"]["value"], found["reversible"]["value"], found["agents"]["value"]) == (0.5, 0.5, 0.5)


def test_the_score_is_the_weighted_mean_of_its_parts() -> None:
    found = judged(made(task(1, "check", "opinion", requirements=("R-1",)), requirements={"R-1": ""}))
    parts = [found[name] for name in ("checks", "proofs", "coverage", "files", "reversible")]
    mean = sum(p["value"] * p["weight"] for p in parts) / sum(p["weight"] for p in parts)
    assert found["score"] == round(mean, 2) == 0.8
