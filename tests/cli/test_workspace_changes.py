"""A run continues in another workspace than it started in, and idumb's own files never block it."""

from __future__ import annotations

from tests.support.project import Project, task, write


def test_an_ignored_file_that_only_a_pattern_declares_is_not_overwritten(project: Project) -> None:
    """R-GIT-1: it is in no tree."""
    project.repo.write(".git/info/exclude", "own/\n")
    project.repo.write("own/key", "mine\n")
    step = write("own/key", "theirs\n")
    project.plan([task("T1-01", files="modify `own/**`", check="grep -q theirs own/key", steps=[step])])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 1, answer.out
    assert project.read("own/key") == "mine\n"
