"""Where reports go: one commit of them for a run, and messages in the project's own style."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, write


def _project(sandbox: GitSandbox, *tasks: str, configuration: str = "") -> Project:
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.plan(tasks or (making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")))
    if configuration:
        project.configure(configuration)
    project.commit_own()
    return project


def test_a_halt_commits_no_report_and_a_run_commits_its_reports_once(sandbox: GitSandbox) -> None:
    """R-GIT-3: uncommitted reports are no change of the user's, so that the run continues over them."""
    failing = task("T1-02", files="create `b.txt`", check="test -e ready", after="T1-01", steps=[write("b.txt", "b\n")])
    project = _project(sandbox, making("T1-01", "a.txt"), failing)
    assert project.execute().code == 1
    assert project.trailers("Idumb-Reports") == []
    assert any("1-SUMMARY.md" in line for line in project.repo.status())
    project.repo.write("ready", "")
    project.repo.git("add", "ready")
    project.repo.git("commit", "-qm", "ready", "ready")
    done = project.json("resume", "1", "--retry-failed")
    assert done.code == 0, done.out
    assert project.trailers("Idumb-Reports") == ["1"]
    assert project.repo.status() == []
    assert project.quick("verify-work", "1").code == 0
    assert project.trailers("Idumb-Reports") == ["1"]


def test_messages_follow_the_template_and_keep_their_trailers(sandbox: GitSandbox) -> None:
    """R-GIT-3."""
    project = _project(sandbox, configuration='git: {message: "feat({phase}): {title} [{id}]"}\n')
    assert project.execute().code == 0
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert project.subjects()[-4:] == [
        "feat(1): Task T1-01 [T1-01]",
        "feat(1): Task T1-02 [T1-02]",
        "feat(1): Phase 1: reports of run 1 [1]",
        "feat(1): Roll back phase 1 to T1-01 [1]",
    ]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
