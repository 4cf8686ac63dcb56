"""Warnings in JSON and events: files that no snapshot has."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, edit, task


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"app.txt": "one\ntwo\n", ".gitignore": "*.log\n"})
    project.plan(
        [task("T1-01", files="modify `app.txt`", check="grep -q TWO app.txt", steps=[edit("app.txt", "two", "TWO")])]
    )
    return project


def leave_out(project: Project) -> None:
    """An ignored file and a nested repository."""
    project.repo.write_all({"debug.log": "l", ".idumb/brain/execution/9/progress.json": "{}"})
    GitSandbox.create(project.folder / "inner").write("a", "a")


NAMED = ("ignored by git): debug.log", "a repository of its own): inner")


def test_files_outside_all_snapshots_are_in_the_warnings(project: Project) -> None:
    leave_out(project)
    answer = project.execute()
    assert answer.code == 0, answer
    warnings = "\n".join(answer.object["warnings"])
    assert [words for words in NAMED if words not in warnings] == []
    assert ".idumb" not in warnings
    assert project.resume().object["warnings"] == []
