"""Where a repository may lie: a task is done and undone there, or the first command refuses. R-GIT-7."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making
from tests.support.refusals import RUNNING, refused

ODD = "co:lon \"quote\" 'apostrophe' *[glob] back\\slash t\tab ünï"


def lives(project: Project) -> None:
    """One task from `init` to `deinit`; afterwards only its two commits and the files of the plan are left."""
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert project.exists("a.txt")
    assert "verified" in project.quick("status").out
    rolled_back = project.quick("rollback", "1", "--to", "start", "--yes")
    assert rolled_back.code == 0, rolled_back.err
    assert not project.exists("a.txt")
    assert project.quick("deinit", "--yes").code == 0
    assert project.repo.kept("refs/idumb/") == {}
    assert [row for row in project.repo.status() if not row.endswith((".planning/", ".idumb/brain/"))] == []


def repository(folder: Path) -> Project:
    repo = GitSandbox.create(folder)
    repo.write("README.md", "mine\n")
    repo.commit()
    return Project(repo, folder)


@pytest.mark.parametrize("place", seed.one_on_a_push(["odd", "long", "below a repository"], "a place"))
def test_a_task_is_done_and_rolled_back_in_a_place(tmp_path: Path, place: str) -> None:
    if place == "below a repository":
        outer = repository(tmp_path / "outer")
        lives(repository(outer.folder / "inner"))
        assert outer.repo.status() == ["?? inner/"]
    else:
        lives(repository(tmp_path / (ODD if place == "odd" else "/".join(["x" * 99] * 2))))


@pytest.mark.parametrize(
    ("name", "shown"),
    seed.one_on_a_push([("new\nline", r"new\nline"), ("c\rr", r"c\rr"), ("caf\udce9", r"caf\xe9")], "a folder's name"),
)
def test_a_folder_name_that_no_list_of_folders_can_hold_is_refused(tmp_path: Path, name: str, shown: str) -> None:
    project = repository(tmp_path / name / "repo")
    for arguments in (*RUNNING, ("init",), ("status",), ("deinit",)):
        error, _ = refused(project, *arguments, exit=4, code="git.unusable-path")
        assert str(error["message"]).startswith(f"{tmp_path}/{shown}/repo has a folder name with "), arguments
        assert str(error["message"]).isprintable()


@pytest.mark.nightly
def test_a_home_that_is_the_repository_needs_to_ignore_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = repository(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    error, _ = refused(project, "init", exit=4, code="git.holds-state")
    assert str(tmp_path / ".local/state/idumb") in str(error["message"])
    project.repo.write(".gitignore", "/.local/state/idumb/\n")
    project.repo.commit()
    lives(project)


@pytest.mark.nightly
def test_a_working_tree_elsewhere_is_refused_until_it_names_its_git_folder(tmp_path: Path) -> None:
    project, tree = repository(tmp_path / "repo"), tmp_path / "tree"
    tree.mkdir()
    project.repo.git("config", "core.worktree", str(tree))
    for arguments in (("init",), ("install", "--host", "claude")):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, "git.work-tree-elsewhere")
    assert sorted(os.listdir(project.folder)) == [".git", "README.md"]
    (tree / ".git").write_text(f"gitdir: {project.repo.git_dir}\n")
    (project.folder / "README.md").rename(tree / "README.md")
    lives(Project(GitSandbox(tree), tree))
