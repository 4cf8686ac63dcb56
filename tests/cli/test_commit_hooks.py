"""Hooks of the user's run when idumb commits: beside his working tree, and what they change is proven."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n"})


def hook(project: Project, name: str, text: str) -> None:
    project.repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n", mode=0o755)


def by_agent(project: Project, text: str, *, check: str = "test -s a.txt") -> None:
    """A program builds the task; it notes each call, and `text` is the rest of it."""
    log = project.folder.parent / "calls"
    project.repo.write("agent.sh", f"echo called >> {log}\n{text}\n")
    project.repo.commit("an agent")
    project.configure("builder: mine\nbindings:\n  mine: {adapter: command, argv: [sh, agent.sh]}\n")
    project.plan([task("T1-01", files="create `a.txt`", check=check)])


def calls(project: Project) -> int:
    return len((project.folder.parent / "calls").read_text().splitlines())


def committed(project: Project, path: str) -> str:
    return project.repo.git("show", f"HEAD:{path}")


def run(project: Project, *flags: str) -> Answer:
    return project.execute("--no-verify", *flags)


def test_a_hook_that_formats_and_refuses_once_costs_no_further_call_of_the_agent(project: Project) -> None:
    """R-RUN-3: as hooks of the framework pre-commit do. The user's file is the committed one."""
    by_agent(project, "echo hello > a.txt")
    formats = (
        "grep -q HELLO a.txt && exit 0; sed -i s/hello/HELLO/ a.txt; echo 'files were modified by this hook'; exit 1"
    )
    hook(project, "pre-commit", f"test -e a.txt || exit 0; {formats}")
    assert run(project).code == 0
    assert (calls(project), committed(project, "a.txt"), project.read("a.txt")) == (1, "HELLO", "HELLO\n")
    assert project.repo.git("status", "--porcelain") == ""


def test_a_hook_may_change_more_than_the_task_but_nothing_that_tasks_may_not(project: Project) -> None:
    """R-RUN-3: a hook can run what the task wrote."""
    project.repo.write("lint.sh", "true\n")
    project.repo.commit("a script that a hook runs")
    target = project.folder.parent / "target"
    script = f"for f in README.md $(cat {target}); do grep -q more $f || {{ echo '# more' >> $f; git add $f; }}; done\n"
    project.plan([task("T1-01", files="modify `lint.sh`", check="test -s lint.sh", steps=[write("lint.sh", script)])])
    hook(project, "pre-commit", "sh ./lint.sh")
    target.write_text(".idumb/config.yaml\n")
    halted = run(project)
    assert (halted.code, project.subjects()[-1]) == (1, "plan")
    assert "a hook changed .idumb/config.yaml in its commit" in str(halted.object)
    assert "more" not in project.read(".idumb/config.yaml")
    target.write_text("\n")
    assert project.resume("--no-verify").code == 0
    assert "more" in committed(project, "README.md")
