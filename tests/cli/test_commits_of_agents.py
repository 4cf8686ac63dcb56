"""An agent may commit in its checkout: its files count, and its words are kept (R-GIT-2)."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """The agent of the first task commits, that of the second does not."""
    project = projects.create(sandbox)
    own = f"echo a > a.txt; git add a.txt; git commit -qm first; git commit -q --allow-empty -m 'feat: an a {TOKEN}'"
    steps = [shell(f"{own}; echo b > b.txt")]
    first = task("T1-01", files="create `a.txt`, create `b.txt`", check="test -s a.txt && test -s b.txt", steps=steps)
    project.plan([first, task("T1-02", files="create `c.txt`", after="T1-01", steps=[shell("echo c > c.txt")])])
    return project


def test_its_files_are_in_the_task_s_commit_and_its_messages_are_shown_without_secrets(project: Project) -> None:
    answer = project.execute("--no-verify")
    assert answer.data["tasks"][0]["files"] == ["a.txt", "b.txt"], answer
    assert project.subjects()[-3:-1] == ["Task T1-01", "Task T1-02"]
    messages = project.json("show", "T1-01").data["attempts"][0]["messages"]
    assert (messages[0], messages[1][:10], TOKEN in messages[1]) == ("first", "feat: an a", False)
    assert "its commit: first" in project.quick("show", "T1-01").out
    assert "messages" not in project.events("1", "--kind", "attempt.finished")[1]["payload"]
