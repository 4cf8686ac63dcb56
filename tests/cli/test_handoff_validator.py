"""A validator that works elsewhere is waited for in the command that asks it, or it is refused."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import task


def test_a_validator_that_hands_off_and_does_not_wait_is_refused_before_anything_runs(sandbox: GitSandbox) -> None:
    """R-ADAPT-2: no builder is called for a verdict that nobody could give in time."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    bindings = (
        "bindings:\n  builds: {adapter: command, argv: [sh, -c, 'echo >> ../called']}\n  away: {adapter: handoff%s}\n"
    )
    project.configure("builder: builds\nvalidator: away\n" + bindings % "")
    answer = project.quick("execute-phase", "1", "--json")
    assert answer.code == 3, answer
    assert "task.validator-elsewhere" in answer.out
    assert not (project.folder.parent / "called").exists()
    project.configure("builder: builds\nvalidator: away\n" + bindings % ", options: {wait: 5}")
    assert project.quick("check-plan", "1", "--json").code == 0
