"""Submodules and nested repositories are left alone, and an agent that does not leave them alone does not pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

SUB = "vendor/sub"


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    """A project with a submodule that has uncommitted work of its own."""
    library = GitSandbox.create(tmp_path / "library")
    library.write("lib.txt", "lib\n")
    library.write("other.txt", "other\n")
    library.commit()
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), SUB)
    sandbox.commit()
    made = projects.create(sandbox)
    sandbox.write(f"{SUB}/lib.txt", "lib\nmine\n")
    sandbox.write(f"{SUB}/new.txt", "new and mine\n")
    return made


def command(project: Project, script: str) -> None:
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    project.configure(f"builder: agent\nbindings:\n  agent: {agent}\n")


def files(project: Project) -> dict[str, str]:
    below = project.folder / SUB
    return {p.name: p.read_text() for p in below.iterdir() if p.is_file() and p.name != ".git"}


@pytest.mark.parametrize("claim", [f"modify `{SUB}/lib.txt`", f"modify `{SUB}/**`", f"delete `{SUB}`", "create `in/a`"])
def test_a_plan_that_claims_to_write_in_another_repository_is_refused(project: Project, claim: str) -> None:
    """R-GIT-7."""
    GitSandbox.create(project.folder / "in")
    path = project.plan([projects.task("T1-01", files=claim)])
    answer = project.quick("execute-phase", "1", "--json")
    assert answer.code == 3
    found = [f for f in answer.error["details"]["findings"] if f["code"] == "path.other-repository"]
    assert [(f["line"], f["severity"]) for f in found] == [
        (path.read_text().split("\n").index(f"- **Files:** {claim}") + 1, "error")
    ]
    assert project.quick("check-plan", "1").code == 3


def test_steps_and_quick_tasks_that_write_in_a_submodule_are_refused(project: Project) -> None:
    """R-GIT-7."""
    before = files(project)
    step = projects.write(f"{SUB}/lib.txt", "gone\n")
    project.plan([projects.task("T1-01", files="modify `vendor/**`", steps=[step])])
    answer = project.quick("check-plan", "1", "--json")
    assert "path.other-repository" in {f["code"] for f in answer.data["findings"]}
    quick = project.quick("quick", "Fix it", "--files", f"{SUB}/lib.txt", "--check", "true", "--json")
    assert quick.code == 3
    assert "path.other-repository" in quick.out
    assert files(project) == before


def test_a_wider_glob_does_not_reach_below_a_submodule(project: Project) -> None:
    """R-GIT-7: its own tools write beside it."""
    before = files(project)
    step = projects.write("vendor/beside.txt", "beside\n")
    project.plan([projects.task("T1-01", files="create `vendor/**`", steps=[step])])
    answer = project.execute()
    assert answer.code == 0, answer
    assert project.read("vendor/beside.txt") == "beside\n"
    assert files(project) == before


@pytest.mark.parametrize(
    ("script", "changed", "kept"),
    [
        ("echo more >> vendor/sub/lib.txt", ["vendor/sub/lib.txt"], 1),
        ("rm vendor/sub/new.txt", ["vendor/sub/new.txt"], 1),
        ("git -C vendor/sub checkout -q .", ["vendor/sub/lib.txt"], 1),
        ("rm vendor/sub/other.txt", ["vendor/sub/other.txt"], 0),
        ("git -C vendor/sub -c user.name=a -c user.email=a@b commit -qam x", [SUB, "vendor/sub/lib.txt"], 1),
    ],
)
def test_an_agent_that_changes_a_submodule_does_not_pass(
    project: Project, script: str, changed: list[str], kept: int
) -> None:
    """R-GIT-7: whatever is declared; what was there before is kept with the snapshot."""
    command(project, f"echo a > vendor/a.txt; {script}")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`, delete `vendor/**`")])
    before = files(project)
    answer = project.execute()
    assert answer.code == 1, answer
    lines = project.json("show", "T1-01").data["attempts"][-1]
    strays = {line["path"]: line for line in lines["ledger"] if line["status"] == "protected"}
    assert sorted(strays) == changed
    assert project.statuses() == {"T1-01": "failed"}
    shown = [c for c in lines["bring_back"] if ":repositories/" in c]
    assert len(shown) == kept
    for line in shown:
        words = line.split(" > ")
        assert project.repo.git(*words[0].split()[1:]) + "\n" == before[Path(words[1]).name]
    assert "vendor/sub is a submodule or a repository of its own" in answer.out


def test_an_agent_that_leaves_a_dirty_submodule_alone_passes(project: Project) -> None:
    """R-GIT-7: and it is said beforehand that its uncommitted work is not brought back."""
    command(project, "echo a > vendor/a.txt; touch vendor/sub/lib.txt")
    project.plan([projects.task("T1-01", files="create `vendor/**`")])
    answer = project.execute()
    assert answer.code == 0, answer
    assert "(uncommitted work in a submodule): vendor/sub" in answer.out


def test_an_agent_that_changes_a_nested_repository_does_not_pass(project: Project) -> None:
    """R-GIT-7."""
    GitSandbox.create(project.folder / "in").write("a.txt", "mine\n")
    command(project, "echo a > a.txt; rm in/a.txt")
    project.plan([projects.task("T1-01", files="create `a.txt`")])
    answer = project.execute()
    assert answer.code == 1, answer
    ledger = project.json("show", "T1-01").data["attempts"][-1]["ledger"]
    assert [line["path"] for line in ledger if line["status"] == "protected"] == ["in/a.txt"]
