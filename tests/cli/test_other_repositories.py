"""Submodules and nested repositories are left alone, and an agent that does not leave them alone does not pass."""

from __future__ import annotations

import json

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project

SUB = "vendor/sub"


def _with_submodule(sandbox: GitSandbox) -> Project:
    library = GitSandbox.create(sandbox.root.parent / "library")
    library.write("lib.txt", "lib\n")
    library.write("other.txt", "other\n")
    library.commit()
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), SUB)
    sandbox.commit()
    project = projects.create(sandbox)
    sandbox.write(f"{SUB}/lib.txt", "lib\nmine\n")
    sandbox.write(f"{SUB}/new.txt", "new and mine\n")
    return project


project = prepared_project(_with_submodule)
"""A project with a submodule that has uncommitted work of its own."""


def command(project: Project, script: str, more: str = "run: {max_attempts: 1}\n") -> None:
    """Build with this script; `$ONCE` is a file that does not exist at first."""
    script = f"ONCE=$HOME/once; {script}"
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    project.configure(f"builder: agent\n{more}bindings:\n  agent: {agent}\n")


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
    command(project, f"echo a > vendor/a.txt; {script}; exit 0")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`, delete `vendor/**`")])
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert "(uncommitted work in a submodule): vendor/sub" in answer.out
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["vendor/a.txt"]
    assert files(project) == before


def test_a_repository_that_an_agent_made_is_not_lost_silently(sandbox: GitSandbox) -> None:
    """R-GIT-5."""
    project = projects.create(sandbox)
    command(project, "echo a > a.txt; git init -q lib; echo x > lib/x")
    project.plan([projects.task("T1-01", files="create `a.txt`, create `lib/**`", check="test -s a.txt")])
    ended = project.execute("--no-verify")
    assert ended.code == 1
    assert "it created repositories, which cannot be delivered: lib" in ended.data["tasks"][0]["reason"]
