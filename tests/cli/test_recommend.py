"""`idumb recommend`: what the program finds itself, and the opinion of a bound researcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import scripted_roles
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making
from tests.support.scripted_roles import PlanningProject


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    for number in range(3):
        project.repo.write("a.py", f"a = {number}\n")
        project.repo.write("test_a.py", f"a = {number}\n")
        project.repo.commit(f"change {number}", "a.py", "test_a.py")
    project.plan(
        [
            making("T1-01", "a.txt"),
            projects.task("T1-02", files="modify `a.py`", check="true", steps=(projects.write("a.py", "a = 9\n"),)),
        ]
    )
    return project


def test_files_that_changed_together_are_named_with_the_edit(project: Project) -> None:
    """R-PLAN-10: nothing is written, and the answer is the same each time."""
    before = project.repo.ledger()
    answer = project.json("recommend", "1")
    rows = [row for row in answer.data["recommendations"] if row["code"] == "recommend.files"]
    assert [(row["edit"]["task"], row["edit"]["text"], row["command"]) for row in rows] == [
        ("T1-02", "modify `test_a.py`", None)
    ]
    assert rows[0]["why"] == ["in 3 of the last 3 commits that changed a.py"]
    assert project.repo.ledger() == before
    assert project.json("recommend", "1").data == answer.data
    assert project.json("recommend", "1", "--task", "T1-01").data["recommendations"] == []
    assert "modify `test_a.py`" in project.quick("recommend", "1").out


def test_in_a_phase_with_a_run_the_edit_is_an_amendment(project: Project) -> None:
    """R-PLAN-10, R-LOCK-8."""
    project.execute()
    rows = project.json("recommend", "1").data["recommendations"]
    assert "idumb amend 1 --widen T1-02 'modify test_a.py'" in [row["command"] for row in rows]


def test_a_researcher_adds_its_opinion_after_consent(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-PLAN-10, R-ADAPT-4: it gets the plan and what idumb found; without consent nothing is started."""
    planning: PlanningProject = scripted_roles.create(sandbox, tmp_path / "agents")
    assert planning.project.quick("plan", "new", "2", "--goal", "G", "--task", "A", "a.txt", "true").code == 0
    planning.answers(researcher=["Test\x1b[2J it first."])
    assert planning.project.quick("recommend", "2", "--json").error["code"] == "consent.missing"
    assert planning.prompts("researcher") == []
    alone = planning.project.quick("recommend", "2", "--facts-only", "--json")
    assert (alone.code, alone.data["advice"]) == (0, None)
    answer = planning.run("recommend", "2")
    assert answer.data["advice"]["text"] == "Test\x1b[2J it first."
    assert answer.data["recommendations"] == alone.data["recommendations"] != []
    (prompt,) = planning.prompts("researcher")
    assert "### T2-01: A" in prompt
    assert answer.data["recommendations"][0]["message"] in prompt
    assert "The report" not in prompt
    shown = planning.project.quick("recommend", "2").out
    assert "Advice of the researcher (scripted), an opinion:" in shown
    assert planning.project.read(".planning/phases/2/01-PLAN.md").count("###") == 1
