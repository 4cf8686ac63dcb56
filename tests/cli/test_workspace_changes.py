"""A run continues in another workspace than it started in, and idumb's own files never block it."""

from __future__ import annotations

import pytest

from tests.support import ended_runs
from tests.support.answer import Answer
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task, write


def _reports(project: Project) -> int:
    return project.repo.git("log", "--format=%s").count("reports of run")


def _resume(project: Project, *flags: str) -> Answer:
    return project.resume("--no-verify", *flags)


def test_the_next_resume_finishes_a_partial_delivery(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-8: idumb's own files never block a delivery."""
    from idumb.git.trees import GitTrees

    make = [shell("echo $$ > a.txt; echo $$ > b.txt")]
    project.plan([task("T1-01", files="create `a.txt`, create `b.txt`", check="test -s b.txt", steps=make)])
    approval = project.approval()
    whole = GitTrees.restore

    def half(trees: GitTrees, candidate: str, base: str, paths: list[str]) -> None:
        whole(trees, candidate, base, paths[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(GitTrees, "restore", half)
        project.quick("execute-phase", "1", "--approve", approval, "--json")
    assert project.exists("a.txt")
    assert not project.exists("b.txt")
    delivered = project.read("a.txt")
    answer = _resume(project)
    assert answer.code == 0, answer.out
    assert (project.read("a.txt"), project.read("b.txt")) == (delivered, delivered)


@pytest.mark.nightly
@pytest.mark.parametrize("again", ["resume", "verify-work"])
def test_a_command_that_changes_nothing_commits_no_reports(prepared: Prepared, again: str) -> None:
    project = prepared.get(ended_runs.failed if again == "resume" else ended_runs.done)
    reports = _reports(project)
    assert project.quick(again, "1", "--json").code == (1 if again == "resume" else 0)
    assert _reports(project) == reports


def test_an_ignored_file_that_only_a_pattern_declares_is_not_overwritten(project: Project) -> None:
    """R-GIT-1: it is in no tree."""
    project.repo.write(".git/info/exclude", "own/\n")
    project.repo.write("own/key", "mine\n")
    step = write("own/key", "theirs\n")
    project.plan([task("T1-01", files="modify `own/**`", check="grep -q theirs own/key", steps=[step])])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 1, answer.out
    assert project.read("own/key") == "mine\n"
