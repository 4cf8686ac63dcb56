"""Every choice that a refusal or a failure offers is a command that can succeed in that state (R-ASK-1, R-RUN-7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import choices, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, write

PLAN = ".planning/phases/1/01-PLAN.md"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", ".env": "A=1\n"})


def step_plan(project: Project, *steps: dict[str, Any]) -> None:
    write_steps(project, *steps)
    project.repo.commit("a step plan")
    assert (
        project.json("approve", "web.yaml", *project.answers("web.yaml"), "--hash", project.approval("web.yaml")).code
        == 0
    )


def write_steps(project: Project, *steps: dict[str, Any]) -> None:
    project.repo.write("web.yaml", "steps:\n" + "".join(f"- {json.dumps(step)}\n" for step in steps))


def given(answer: Answer) -> list[dict[str, Any]]:
    return list(answer.error["details"]["choices"])


def offered(answer: Answer) -> list[str]:
    return [row["id"] for row in given(answer)]


@pytest.mark.parametrize(
    ("path", "ways"),
    seed.one_on_a_push(
        [
            (PLAN, ["look", "leave-out", "retry"]),
            (".env", ["look", "amend", "leave-out", "retry"]),
            ("stray.txt", ["look", "amend", "keep", "leave-out", "retry"]),
        ],
        "a changed path",
    ),
)
def test_after_a_task_changed_its_plan_or_a_protected_path(project: Project, path: str, ways: list[str]) -> None:
    """R-ASK-1, R-LOCK-5, R-RUN-7: no choice allows a forbidden write."""
    steps = [write("a.txt", "made\n"), shell(f"echo '# x' >> {path}")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    failed = project.execute("--on-deviation", "stop")
    assert (failed.code, failed.error["code"], offered(failed)) == (1, "run.halted", ways)
    assert project.json("decisions").data["decisions"] == []
    assert choices.refused(project, failed) == {}
    again = project.resume()
    assert given(again) == given(failed) or choices.refused(project, again) == {}


def test_a_changed_step_plan_offers_the_ways_to_adopt_it(project: Project) -> None:
    """R-ASK-1, R-RUN-12: a strict plan is approved before the run adopts the change."""
    step_plan(project, write("a.txt", "a"), shell("exit 3"))
    assert project.json("execute", "web.yaml").code == 1
    write_steps(project, write("a.txt", "a"), shell("echo y > c.txt"))
    commands = [choice["command"] for choice in project.json("resume", "web.yaml").error["details"]["choices"]][:3]
    assert [command.split()[1] for command in commands] == ["check-plan", "approve", "amend"]
    assert project.json(*commands[0].split()[1:]).code == 0
    approved = project.json(*commands[1].split()[1:])
    assert approved.error["code"] == "approval.not-given"
    assert project.json(*str(approved.error["hint"]).split()[1:]).code == 0
    amended = project.json(*commands[2].split()[1:])
    assert amended.error["code"] == "amend.not-confirmed"
    assert project.json(*str(amended.error["hint"]).split()[1:]).code == 0
