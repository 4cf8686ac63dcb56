"""The confidence that is shown at lock-in, from its parts (R-GATE-6)."""

from __future__ import annotations

from typing import Any

from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake import self_check
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, RollbackClass, Task, TestIntent
from idumb.domain.settings import Settings
from tests.support.cases import every
from tests.support.intake import assembled

FILES = (FileClaim("create", "a"),)


def task(number: int, *proofs: str, **more: Any) -> Task:
    criteria = tuple(Criterion(f"AC-{i}", "it holds", p, "true") for i, p in enumerate(proofs, 1))
    return Task(f"T1-{number:02d}", "A task", acceptance=criteria, **{"files": FILES, **more})


def locked_contract(*tasks: Task, **more: Any) -> Contract:
    plan = Plan("p", "0" * 64, "1", "01", "A plan", "A goal", tasks=tasks, **more)
    return assembled(plan, settings=Settings())


def finding(severity: str) -> Finding:
    return Finding("a.code", severity, "p", 1, 1, "", "", "", "words")


def judged(locked: Contract, *findings: Finding) -> dict[str, Any]:
    assessment = self_check.assess(locked, findings)
    return {"score": assessment.score, **{part.name: part.as_dict() for part in assessment.parts}}


TESTED = (TestIntent("make test", "fails", "passes"),)
MAILS = RollbackClass("irreversible", (), "mail")
NEEDED = {"requirements": {"R-1": "", "R-2": ""}}


@every(
    "tasks, plan, part, value",
    [
        ((task(1, "check"), task(2, "verify", verify=("make",))), {}, "proofs", 1.0),
        ((task(1, "check", "opinion", "human", "check"),), {}, "proofs", 0.5),
        ((task(1, "opinion", tests=TESTED),), {}, "proofs", 0.5),
        ((task(1, "check"),), {}, "coverage", None),
        ((task(1, "check", requirements=("R-1", "R-9")),), NEEDED, "coverage", 0.5),
        ((task(1, "check", files=None), task(2, "check")), {}, "files", 0.5),
        ((task(1, "check", rollback=MAILS), task(2, "check")), {}, "reversible", 0.5),
    ],
)
def test_each_part_is_the_share_of_what_is_so(
    tasks: tuple[Task, ...], plan: dict[str, Any], part: str, value: float | None
) -> None:
    """R-GATE-6: opinions and people prove less than commands, and a part without data has no value."""
    assert judged(locked_contract(*tasks, **plan))[part]["value"] == value


def test_a_part_says_why_and_one_without_data_does_not_count() -> None:
    score = judged(locked_contract(task(1, "check")))
    assert score["score"] == 1.0
    assert score["proofs"]["why"] == "1 of 1 criteria and tests are proven by commands"
    covered = judged(locked_contract(task(1, "check", requirements=("R-1",)), **NEEDED))["coverage"]
    assert covered == {"name": "coverage", "value": 0.5, "weight": 2, "why": "1 of 2 requirements have a task"}


def test_each_warning_costs_one_task_s_share_and_errors_cost_nothing() -> None:
    locked = locked_contract(task(1, "check"), task(2, "check"))
    assert judged(locked, finding(WARNING))["checks"]["value"] == 0.5
    assert judged(locked, *[finding(WARNING)] * 5)["checks"]["value"] == 0.0
    assert judged(locked, finding(ERROR))["checks"]["value"] == 1.0


def test_the_score_is_the_weighted_mean_of_its_parts() -> None:
    score = judged(locked_contract(task(1, "check", "opinion", requirements=("R-1",)), requirements={"R-1": ""}))
    parts = [score[name] for name in ("checks", "proofs", "coverage", "files", "reversible")]
    mean = sum(p["value"] * p["weight"] for p in parts) / sum(p["weight"] for p in parts)
    assert score["score"] == round(mean, 2) == 0.8
