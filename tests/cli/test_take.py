"""`take`: the user goes on with what an agent left, in his own tree, and `submit` judges all of it."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, task, write


def _failed(sandbox: GitSandbox) -> Project:
    """A run whose agent wrote two files, one of them wrong."""
    project = projects.create(sandbox, files={"b.txt": "one\n"})
    steps = [write("a.txt", "wrong\n"), write("b.txt", "two\n")]
    files = "create `a.txt`, modify `b.txt`"
    project.plan([task("T1-01", files=files, check="grep -q right a.txt && grep -q t b.txt", steps=steps)])
    assert project.execute("--max-attempts", "1", "--no-verify").code in (1, 5)
    assert not project.exists("a.txt")
    return project


project = prepared_project(_failed)


def test_the_work_of_an_agent_is_corrected_by_hand_judged_and_committed(project: Project) -> None:
    taken = project.json("take", "T1-01")
    assert taken.code == 0, taken
    assert (project.read("a.txt"), project.read("b.txt")) == ("wrong\n", "two\n")
    assert project.json("submit", "T1-01", "--no-verify").code == 1
    project.repo.write("a.txt", "right\n")
    assert project.json("take", "T1-01").code == 0
    assert project.json("submit", "T1-01", "--no-verify").code == 0
    assert project.statuses() == {"T1-01": "completed"}
    assert project.repo.git("show", "HEAD:a.txt") == "right"


def test_a_file_that_the_user_corrected_already_stays_as_it_is(project: Project) -> None:
    """R-RUN-5: the correction alone does not continue the run; its answer names the command that does."""
    project.repo.write("a.txt", "right\n")
    resumed = project.json("resume", "1", "--no-verify")
    assert (resumed.code, "idumb take T1-01" in [way["command"] for way in resumed.object["ways"]]) == (1, True)
    refused = project.json("accept", "T1-01", "--why", "it is fine")
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since")
    assert project.json("take", "T1-01").code == 0
    assert (project.read("a.txt"), project.read("b.txt")) == ("right\n", "two\n")
    assert project.json("submit", "T1-01", "--no-verify").code == 0


def test_giving_up_takes_the_work_out_of_the_tree_again(project: Project) -> None:
    project.json("take", "T1-01")
    assert project.json("give-up", "T1-01", "--why", "later").code == 0
    assert project.repo.git("status", "--porcelain", "a.txt", "b.txt") == ""
