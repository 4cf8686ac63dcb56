"""Every command that a new user gets suggested works: no hint leads to a refusal (R-RUN-1, R-ADAPT-4)."""

from __future__ import annotations

import shlex

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

QUICK = ("quick", "Fix the typo", "--files", "README.md", "--check", "! grep Teh README.md")


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "Teh thing\n"})


def named_next(project: Project) -> list[str]:
    command = project.quick("next", "--json").data["next"]["command"]
    return shlex.split(command)[1:]


def test_without_a_planner_next_suggests_a_command_that_writes_a_plan(project: Project) -> None:
    """R-ADAPT-4: and the plan that it writes can be checked."""
    command = named_next(project)
    assert command == ["plan-phase", "1", "--template"]
    assert project.quick(*command).code == 0
    assert project.quick("check-plan", "1").code == 0


def test_with_a_planner_next_suggests_it(project: Project) -> None:
    assert named_next(project)[-1] == "--template"
    project.configure("roles: {planner: {binding: writer}}\nbindings:\n  writer: {adapter: command, argv: [cat]}\n")
    assert named_next(project) == ["plan-phase", "1"]


def test_a_quick_task_without_a_builder_suggests_one_that_needs_no_agent(project: Project) -> None:
    refused = project.quick(*QUICK, "--json")
    assert refused.code == 3
    assert "--builder human" in refused.error["hint"]
    answer = project.quick(*QUICK, "--builder", "human", "--json")
    command = next(choice["command"] for choice in answer.error["details"]["choices"] if choice["id"] == "run")
    started = project.quick(*shlex.split(command)[1:], "--json")
    assert (started.code, started.error["code"]) == (5, "run.waiting")
