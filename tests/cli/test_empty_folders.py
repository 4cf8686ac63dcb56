"""Rollback removes empty folders that a task's steps made, and undo restores them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task, write


def makes(*folders: str) -> list[dict[str, Any]]:
    return [{"tool": "make_directory", "intent": f"make {path}", "arguments": {"path": path}} for path in folders]


def folders(project: Project) -> list[str]:
    own = {".git", ".idumb", ".planning"}
    empty = [
        os.path.relpath(os.path.join(here, name), project.folder)
        for here, below, _ in os.walk(project.folder)
        for name in below
    ]
    return sorted(path for path in empty if path.split("/")[0] not in own)


def back(project: Project) -> dict[str, object]:
    answer = project.json("rollback", "1", "--to", "start", "--yes")
    assert answer.code == 0, answer
    return answer.data


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"app.txt": "one\n"})
    (project.folder / "mine").mkdir()
    return project


def test_empty_folders_made_by_a_task_are_removed_and_restored(project: Project) -> None:
    """R-GIT-3: a folder that was there before stays, though the task wanted it too, and one with the user's file."""
    steps = [*makes("mine", "mine/inner", "new/deep", "full"), write("full/a.txt", "a\n")]
    project.plan([task("T1-01", files="create `full/a.txt`", check="test -e full/a.txt", steps=steps)])
    assert project.execute("--no-verify").code == 0
    after = ["full", "mine", "mine/inner", "new", "new/deep"]
    assert folders(project) == after
    back(project)
    assert folders(project) == ["mine"]
    for expected in (after, ["mine"], after):
        assert project.quick("undo", "--yes").code == 0
        assert folders(project) == expected
    project.repo.write("new/theirs.txt", "theirs\n")
    back(project)
    assert folders(project) == ["mine", "new"]
    assert project.read("new/theirs.txt") == "theirs\n"


def test_a_folder_of_a_killed_attempt_is_removed_too(project: Project) -> None:
    kill = shell("[ -e ../killed ] || { touch ../killed; kill -9 $(ps -o ppid= -p $PPID); }")
    steps = [*makes("new"), write("a.txt", "a\n"), kill]
    project.plan([task("T1-01", files="create `a.txt`", check="true", steps=steps)])
    assert project.idumb("execute-phase", "1", "--approve", project.approval()).code == -9
    assert folders(project) == ["mine", "new"]
    assert project.resume("--no-verify").code == 0
    back(project)
    assert folders(project) == ["mine"]
