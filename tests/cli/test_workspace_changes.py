"""A run continues in another workspace than it started in, and idumb's own files never block it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.answer import Answer
from tests.support.project import Project, shell, task, write

if TYPE_CHECKING:
    import pytest


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


def test_an_ignored_file_that_only_a_pattern_declares_is_not_overwritten(project: Project) -> None:
    """R-GIT-1: it is in no tree."""
    project.repo.write(".git/info/exclude", "own/\n")
    project.repo.write("own/key", "mine\n")
    step = write("own/key", "theirs\n")
    project.plan([task("T1-01", files="modify `own/**`", check="grep -q theirs own/key", steps=[step])])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 1, answer.out
    assert project.read("own/key") == "mine\n"
