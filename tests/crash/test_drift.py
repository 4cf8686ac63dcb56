"""kill -9 while a builder's index changes are reverted, and before its commit is reported."""

from __future__ import annotations

import subprocess

import pytest

from tests.crash import harness
from tests.crash.harness import KILLED
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write

WHO = "git -c user.name=Pat -c user.email=pat@example.invalid"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"src.txt": "one\n"})
    steps = [write("b.txt", "b\n"), shell("sh ../actor")]
    project.plan([making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", after="T1-01", steps=steps)])
    sandbox.write_all({"src.txt": "two\n", "notes.txt": "mine\n", "staged.txt": "staged\n"})
    sandbox.git("add", "staged.txt")
    return project


def killed(project: Project, script: str, start: str, nth: int = 1) -> str:
    """Kill idumb while the builder runs `script`, at the nth point named `start…`; return the warnings of `resume`."""
    actor = project.folder.parent / "actor"
    actor.write_text(script)
    consent = project.approval()
    answer = harness.run(project, "execute-phase", "1", "--approve", consent, at=start, occurrence=nth)
    assert answer.code == KILLED, answer
    actor.write_text("")
    answer = harness.go_on(project, consent)
    assert answer.code in {0, 1}, answer  # 1: what stays committed leaves the task nothing to do
    return "\n".join(answer.object["warnings"])


def staged(project: Project) -> list[str]:
    return project.repo.git("diff", "--cached", "--name-only").splitlines()


EDGES = [
    ("before GitTrees.keep_blobs .*T1-02/1/index", 1),
    ("after GitTrees.keep_blobs .*T1-02/1/index", 1),
    ("before GitHistory.commit", 2),
    ("after GitHistory.commit", 2),
]


@pytest.mark.parametrize(("edge", "nth"), seed.one_on_a_push(EDGES, "staged"))
def test_changes_staged_during_a_task_are_kept_and_reported_after_a_kill(project: Project, edge: str, nth: int) -> None:
    """R-GIT-2, R-GIT-6: with a kill anywhere; the printed command restores what was staged before."""
    output = killed(project, "git reset -q; git add src.txt", edge, nth)
    assert "b.txt" in project.repo.git("log", "--name-only", "--format=", "--grep=Idumb-Task: T1-02").splitlines()
    assert staged(project) == ["src.txt"]
    command = next(line for line in output.splitlines() if "the index changed" in line).partition("Earlier state: ")[2]
    subprocess.run(["sh", "-ec", command], cwd=project.folder, check=True)
    assert staged(project) == ["staged.txt"]


COMMIT = ("before GitHistory.commit", "after GitHistory.commit")


@pytest.mark.parametrize("edge", seed.one_on_a_push(COMMIT, "partly staged"))
def test_a_partly_staged_file_is_kept_and_reported_after_a_kill_at_its_commit(project: Project, edge: str) -> None:
    """R-GIT-2, R-GIT-6."""
    half = "git update-index --add --cacheinfo 100644,$(echo half | git hash-object -w --stdin),b.txt"
    output = killed(project, half, edge, nth=2)
    assert project.repo.git("show", "HEAD~1:b.txt") == "b"
    project.repo.git("gc", "--quiet", "--prune=now")
    command = next(line for line in output.splitlines() if "staged with other content" in line).partition(": ")[2]
    subprocess.run(["sh", "-ec", command], cwd=project.folder, check=True)
    assert project.repo.git("show", ":b.txt") == "half"


def test_a_builder_s_commit_is_kept_and_reported_after_a_kill(project: Project) -> None:
    """R-GIT-2, R-GIT-6."""
    output = killed(project, f"git add -A; {WHO} commit -qm mine", "before SqliteEventLog.append run.halted")
    assert "HEAD went from" in output
    mine = project.repo.git("log", "--format=%H", "--grep=^mine$")
    assert mine in project.repo.kept("refs/idumb/").values()


def test_a_branch_moved_by_a_builder_is_kept_and_reported_after_a_kill(project: Project) -> None:
    """R-GIT-2, R-GIT-6: the earlier commit, which no ref names any more, is kept, and the command restores it."""
    repo = project.repo
    repo.git("branch", "other")
    repo.git("branch", "ahead")
    repo.git("tag", "v1")
    repo.git("-c", "user.name=Pat", "-c", "user.email=p@example.invalid", "commit", "--allow-empty", "-qm", "mine")
    mine = repo.git("rev-parse", "HEAD").strip()
    repo.git("branch", "-f", "other")
    repo.git("update-ref", "refs/heads/main", "HEAD~1")
    script = "git branch -qf other main; git tag -d v1; git branch -qf ahead main; git branch new"
    output = killed(project, script, "before SqliteEventLog.append attempt.interrupted")
    assert f"refs moved: refs/heads/other ({mine[:12]} -> " in output
    assert "refs/tags/v1 (" in output
    assert "new" not in output
    back = next(part for part in output.partition("Earlier state: ")[2].split("; ") if "other" in part)
    assert mine in repo.kept("refs/idumb/").values()
    repo.git(*back.split()[1:])
    assert repo.git("rev-parse", "other").strip() == mine
