"""Files that decide what git runs and that changed during a task: named in a guided run, refused in a strict one."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.git import git_program
from tests.support import approvals
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making, shell, write

HOOK = ".git/hooks/pre-commit"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """The second task runs the script `actor` beside the repository."""
    project = projects.create(sandbox, files={"README.md": "one\n"})
    steps = [write("b.txt", "b\n"), shell(f"sh {project.folder.parent}/actor")]
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01", steps=steps)])
    return project


def acts(project: Project, *lines: str) -> None:
    (project.folder.parent / "actor").write_text("\n".join((*lines, "exit 0", "")))


def tmp_ran(project: Project) -> Path:
    """A file that every planted program makes."""
    return project.folder.parent / "ran"


def plants(project: Project) -> None:
    """A hook appears, which would tell that git ran it."""
    hook = project.folder / HOOK
    acts(project, f"mkdir -p {hook.parent}", f"echo 'touch {tmp_ran(project)}' > {hook}; chmod +x {hook}")


def refused(project: Project, *arguments: str) -> Answer:
    answer = project.quick(*arguments, "--json")
    assert (answer.code, answer.error["code"]) == (4, "git.guarded-changed"), answer
    assert answer.error["details"]["paths"] == [HOOK]
    assert not tmp_ran(project).exists()
    return answer


def test_a_strict_run_refuses_a_planted_hook_until_a_person_accepts_it_and_that_is_recorded(project: Project) -> None:
    """R-GIT-6, F53."""
    plants(project)
    answer = approvals.strict(project, "--no-verify")
    assert (answer.code, answer.error["code"]) == (4, "git.guarded-changed"), answer
    assert f"idumb resume 1 --accept-git {HOOK}" in answer.error["hint"]
    for arguments in (("resume", "1"), ("rollback", "1", "--to", "start", "--yes"), ("accept", "T1-02", "--why", "x")):
        refused(project, *arguments)
    refused(project, "resume", "1", "--accept-git", ".git/config")
    acts(project)
    answer = project.quick("resume", "1", "--accept-git", HOOK, "--no-verify", "--json")
    assert answer.data["outcome"] == "complete", answer
    (event,) = project.events("1", "--kind", "guarded.accepted")
    assert event["payload"]["paths"] == [HOOK]
    assert HOOK in event["payload"]["guarded"]


def test_a_guided_run_names_what_changed_without_values_and_goes_on(project: Project, home: Path) -> None:
    """R-GIT-6: the user's own git may have written it."""
    (home / "gitconfig").write_text("[alias]\n\tx = y\n")
    config = f"git config --file {home}/gitconfig"
    acts(project, f"{config} url.https://t0ken@host/.insteadOf x", f"{config} safe.directory /elsewhere")
    answer = run(project, "--no-verify")
    assert answer.data["outcome"] == "complete", answer
    (warning,) = [words for words in answer.object["warnings"] if "decide what git runs" in words]
    assert warning.startswith("While T1-02 ran, files changed that decide what git runs: ~/gitconfig (safe.directory,")
    assert "url.*.insteadof" in warning
    assert "t0ken" not in answer.out


def test_no_variable_that_redirects_git_or_sets_its_configuration_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that they name can be planted."""
    names = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_PARAMETERS"}
    for name in names:
        monkeypatch.setenv(name, "1")
    assert names.isdisjoint(git_program.environment("/"))
