"""A phase planned by a model behind a loopback server: the whole chain, including unusable answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import fake_model, scripted_roles
from tests.support.gitrepo import GitSandbox
from tests.support.project import making, plan_text
from tests.support.scripted_roles import PlanningProject

PLAN = ".planning/phases/2/01-PLAN.md"
GOOD = plan_text([making("T2-01", "a.txt")], phase="2").rstrip("\n") + "\n"


@pytest.fixture
def planning(sandbox: GitSandbox, tmp_path: Path) -> PlanningProject:
    return scripted_roles.create(sandbox, tmp_path / "agents")


def bind(planning: PlanningProject, address: str) -> None:
    options = json.dumps({"base_url": f"{address}/v1", "output": "prompted"})
    planning.project.configure(
        f"bindings:\n  model: {{adapter: model, model: 'openai:fake', options: {options}}}\n"
        "roles:\n  planner: {binding: model}\n  plan-checker: {binding: model}\n"
    )


def rule(when: str, answer: dict[str, object], times: int = 9) -> str:
    return json.dumps({"when": when, "times": times, "answers": [answer]})


def test_a_model_plans_after_a_garbage_answer_and_a_checker_reviews_the_plan(planning: PlanningProject) -> None:
    """R-ADAPT-4: a malformed answer costs one round and nothing else."""
    rules = (
        rule("Plan phase 2", {"fault": "garbage"}, times=1),
        rule("Plan phase 2", {"say": f"Here it is:\n\n````markdown\n{GOOD}````", "tokens": {"in": 900, "out": 70}}),
        rule("Look at the plan", {"data": {"verdict": "PASS", "findings": []}}),
    )
    with fake_model.serving(*rules) as served:
        bind(planning, served.address)
        answer = planning.run("plan-phase", "2")
    assert (answer.code, answer.data["rounds"], answer.object["warnings"]) == (0, 2, [])
    assert planning.project.read(PLAN) == GOOD
    events = planning.project.events("--kind", "role.asked")
    assert [e["payload"]["role"] for e in events] == ["planner", "planner", "plan-checker"]
    assert events[1]["payload"]["usage"]["tokens_out"] == 70
