"""Where a repository may lie: a task is done and undone there, or the first command refuses. R-GIT-7."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
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
    repo.commit_with({"README.md": "mine\n"})
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
    project.repo.commit_with({".gitignore": "/.local/state/idumb/\n"})
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


SUB = "vendor/sub"


def _with_submodule(sandbox: GitSandbox) -> Project:
    library = GitSandbox.create(sandbox.root.parent / "library")
    library.write("lib.txt", "lib\n")
    library.commit_with({"other.txt": "other\n"})
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), SUB)
    sandbox.commit()
    project = projects.create(sandbox)
    sandbox.write_all({f"{SUB}/lib.txt": "lib\nmine\n", f"{SUB}/new.txt": "new and mine\n"})
    return project


project = prepared_project(_with_submodule)
"""A project with a submodule that has uncommitted work of its own."""


def files(project: Project) -> dict[str, str]:
    below = project.folder / SUB
    return {p.name: p.read_text() for p in below.iterdir() if p.is_file() and p.name != ".git"}


def test_a_plan_that_writes_in_another_repository_is_refused(project: Project) -> None:
    """R-GIT-7: each claim, where it stands."""
    GitSandbox.create(project.folder / "in")
    claims = (f"modify `{SUB}/lib.txt`", f"modify `{SUB}/**`", f"delete `{SUB}`", "create `in/a`")
    path = project.plan([projects.task(f"T1-0{n}", files=claim) for n, claim in enumerate(claims, 1)])
    answer = project.quick("execute-phase", "1", "--json")
    assert answer.code == 3
    findings = [f for f in answer.error["details"]["findings"] if f["code"] == "path.other-repository"]
    lines = path.read_text().split("\n")
    assert [(f["line"], f["severity"]) for f in findings] == [
        (lines.index(f"- **Files:** {claim}") + 1, "error") for claim in claims
    ]
    assert project.quick("check-plan", "1").code == 3


CHANGES = (
    "touch vendor/sub/lib.txt",
    "rm vendor/sub/*",
    "echo x > vendor/sub/lib.txt; git -C vendor/sub -c user.name=a -c user.email=a@b commit -qam x",
)


@pytest.mark.parametrize("script", seed.one_on_a_push(CHANGES, "a changed submodule"))
def test_what_an_agent_does_in_a_submodule_stays_in_its_copy(project: Project, script: str) -> None:
    """R-GIT-7: a glob does not reach into it; a warning says first that its uncommitted work cannot be restored."""
    before = files(project)
    project.built_by(f"echo a > vendor/a.txt; {script}; exit 0")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`, delete `vendor/**`")])
    answer = run(project, "--no-verify", "--max-attempts", "1")
    assert answer.code == 0, answer
    assert "(uncommitted work in a submodule): vendor/sub" in answer.out
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["vendor/a.txt"]
    assert files(project) == before


def test_a_repository_that_an_agent_made_is_not_lost_silently(sandbox: GitSandbox) -> None:
    """R-GIT-5."""
    project = projects.create(sandbox)
    project.built_by("echo a > a.txt; git init -q lib; echo x > lib/x")
    project.plan([projects.task("T1-01", files="create `a.txt`, create `lib/**`", check="test -s a.txt")])
    ended = project.execute("--no-verify", "--max-attempts", "1")
    assert ended.code == 1
    assert "it created repositories, which cannot be delivered: lib" in ended.data["tasks"][0]["reason"]
