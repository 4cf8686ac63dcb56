"""Plans and settings that a clone would not have are named, with the command that commits them (R-PLAN-1)."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

PLAN = ".planning/phases/1/01-PLAN.md"
CONFIGURATION = ".idumb/config.yaml"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """idumb is set up and a plan is written, but neither is added to git."""
    sandbox.write("README.md", "# A project\n")
    sandbox.commit("begin")
    project = Project(sandbox, sandbox.root)
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt")], commit=False)
    return project


def commit(project: Project, untracked: dict[str, Any]) -> None:
    subprocess.run(["sh", "-ec", untracked["command"]], cwd=project.folder, check=True)


def test_check_plan_names_new_plans_until_they_are_committed(project: Project) -> None:
    """R-PLAN-1."""
    untracked = project.json("check-plan", "1").data["untracked"]
    assert untracked["paths"] == [CONFIGURATION, PLAN]
    output = project.quick("check-plan", "1").out
    assert f"Not committed: {CONFIGURATION}, {PLAN}." in output
    assert untracked["command"] in output
    project.repo.git("add", "--", CONFIGURATION)
    assert project.json("check-plan", "1").data["untracked"] == untracked
    project.repo.git("add", "--", PLAN)
    assert project.json("check-plan", "1").data["untracked"] == untracked
    commit(project, untracked)
    assert project.json("check-plan", "1").data["untracked"] is None
    assert "Not committed" not in project.quick("check-plan", "1").out


def test_policy_and_templates_count_and_unusual_names_are_quoted(project: Project) -> None:
    """R-PLAN-1."""
    policy, template = ".idumb/policy/tools.yaml", ".idumb/prompts/terse.md"
    for path, text in ((policy, "allow: [run, write_file]\n"), (template, "{task}\n")):
        (project.folder / path).parent.mkdir(exist_ok=True)
        (project.folder / path).write_text(text, encoding="utf-8")
    odd = project.plan([making("T2-01", "b.txt")], phase="2", folder="02-it's odd", commit=False)
    path = odd.relative_to(project.folder).as_posix()
    answer = project.json("check-plan", "2")
    assert answer.data, answer
    untracked = answer.data["untracked"]
    assert untracked["paths"] == sorted([CONFIGURATION, policy, template, path])
    commit(project, untracked)
    assert project.json("check-plan", "2").data["untracked"] is None


def test_ignored_files_are_omitted(project: Project) -> None:
    """R-PLAN-1: there the reports stay out of git as well."""
    (project.folder / ".gitignore").write_text(".planning/\n.idumb/\n", encoding="utf-8")
    assert project.json("check-plan", "1").data["untracked"] is None
