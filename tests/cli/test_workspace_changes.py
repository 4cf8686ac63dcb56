"""A run continues in another workspace than it started in, and idumb's own files never block it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support import ended_runs, warm
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task, write


def _reports(project: Project) -> int:
    return project.repo.git("log", "--format=%s").count("reports of run")


def _resume(project: Project, *flags: str) -> Answer:
    return project.resume("--no-verify", *flags)


def _killed(sandbox: GitSandbox, *flags: str) -> Project:
    """Kill idumb in the middle of T1-01, after its first file was written; its child processes die with its pipe."""
    project = projects.create(sandbox)
    door, go = (project.folder / ".git" / name for name in ("door", "go"))
    rest = f"if [ -e {go} ]; then echo 2 > a/two.txt; else cat {door}; fi"
    project.plan(
        [
            task(
                "T1-01",
                files="create `a/one.txt`, create `a/two.txt`",
                check="test -f a/two.txt",
                steps=[shell(f"mkdir -p a; echo $$ > a/one.txt; {rest}")],
            ),
            task("T1-02", files="modify `README.md`", check="grep -q more README.md", after="T1-01",
                 steps=[shell("echo more >> README.md")]),
        ]
    )  # fmt: skip
    os.mkfifo(door)
    _kill(project, door, "execute-phase", "1", "--approve", project.approval(), *flags)
    go.touch()
    return project


def _kill(project: Project, door: Path, *arguments: str) -> None:
    """Kill a command when its step reads the door."""
    started = warm.of_this_process().start(project.start, *arguments)
    opened = os.open(door, os.O_WRONLY)  # waits until the step reads it, so its first file is there
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    os.close(opened)


@pytest.fixture
def killed(prepared: Prepared) -> Project:
    return prepared.get(_killed)


def test_a_run_killed_in_the_user_s_tree_continues_in_a_clone(killed: Project) -> None:
    """R-RUN-8: changes of the killed attempt are reverted, so the clone's result is delivered."""
    assert killed.exists("a/one.txt")
    answer = _resume(killed, "--workspace", "clone")
    assert answer.code == 0, answer.out
    assert killed.read("a/two.txt") == "2\n"
    assert killed.read("README.md") == "# A project\nmore\n"


def test_an_undeliverable_result_waits_and_commits_no_reports(killed: Project) -> None:
    """R-GIT-1: the user's edit stays; after it is committed the task is repeated on top, and the answer says so."""
    killed.repo.write("README.md", "# Mine\n")
    assert _resume(killed, "--workspace", "clone").error["code"] == "git.commit-refused"
    reports = _reports(killed)
    refused = _resume(killed, "--workspace", "clone")
    assert refused.error["code"] == "task.changed-since", refused.out
    assert "README.md was changed since" in refused.error["message"]
    assert _reports(killed) == reports
    assert killed.read("README.md") == "# Mine\n"
    killed.repo.git("commit", "--quiet", "-m", "mine", "README.md")
    assert _resume(killed, "--workspace", "clone").code == 0
    assert killed.read("README.md") == "# Mine\nmore\n"
    cut = [event["payload"]["reason"] for event in killed.events("--kind", "attempt.interrupted")]
    assert cut.count("idumb was killed during the attempt") == 1  # of T1-01, which was


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
        project.quick("execute-phase", "1", "--approve", approval, "--workspace", "clone", "--json")
    assert project.exists("a.txt")
    assert not project.exists("b.txt")
    delivered = project.read("a.txt")
    answer = _resume(project)
    assert answer.code == 0, answer.out
    assert (project.read("a.txt"), project.read("b.txt")) == (delivered, delivered)


@pytest.mark.parametrize("again", ["resume", "verify-work"])
def test_a_command_that_changes_nothing_commits_no_reports(prepared: Prepared, again: str) -> None:
    project = prepared.get(ended_runs.failed if again == "resume" else ended_runs.done)
    reports = _reports(project)
    assert project.quick(again, "1", "--json").code == (1 if again == "resume" else 0)
    assert _reports(project) == reports


def test_next_says_to_wait_while_a_run_is_active(project: Project) -> None:
    """No command is named, lest a script that follows `next` cancels the work. Doctor reports no missing anchor."""
    steps = [shell("echo > .git/began; cat .git/door > a.txt")]
    project.plan([task("T1-01", files="create `a.txt`", check="true", steps=steps)])
    began, door = (Path(project.folder, ".git", name) for name in ("began", "door"))
    os.mkfifo(began)
    os.mkfifo(door)
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--no-verify") as run:
        began.read_text(encoding="utf-8")
        suggestion = project.quick("next", "--json").data["next"]
        shown = project.quick("status").out
        looked_at = project.quick("doctor", "--json").data["checks"]
        door.write_text("done\n", encoding="utf-8")
        assert run.wait().code == 0
    assert [row["state"] for row in looked_at if row["code"] == "store.anchor"] == ["ok"]
    assert suggestion["command"] is None
    assert "wait for it, or stop it with idumb cancel" in suggestion["why"]
    assert "idumb resume" not in shown
    assert "idumb cancel" in shown


def test_an_ignored_file_that_only_a_pattern_declares_is_not_overwritten(project: Project) -> None:
    """R-GIT-1: only a file declared by name is saved before."""
    project.repo.write(".git/info/exclude", "own/\n")
    project.repo.write("own/key", "mine\n")
    step = write("own/key", "theirs\n")
    project.plan([task("T1-01", files="modify `own/**`", check="grep -q theirs own/key", steps=[step])])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 1, answer.out
    assert project.read("own/key") == "mine\n"
    assert "declare `own/key` under the task's Files" in answer.out
