"""SIGINT, SIGTERM and SIGHUP, while a builder works or at durable calls: the run stops at a safe point (F36)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.crash import harness
from tests.crash.kill_points import Scene
from tests.crash.shapes import SHAPES
from tests.support import project as projects
from tests.support import seed, warm
from tests.support.ended import has_ended
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task

# The second try finds the note that the first one left outside the workspace.
SLEEPER = "echo half > b.txt; test -e {note} || {{ touch {note}; setsid sleep 600 & echo $! > {door}; sleep 600; }}"


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "door")
    step = shell(SLEEPER.format(note=tmp_path / "note", door=tmp_path / "door") + "; echo whole >> b.txt")
    project.plan(
        [
            making("T1-01", "a.txt"),
            task("T1-02", files="create `b.txt`", check="grep -q whole b.txt", after="T1-01", steps=[step]),
            making("T1-03", "c.txt", after="T1-02"),
        ]
    )
    return project


def test_an_interrupted_run_records_it_and_can_be_resumed(project: Project, tmp_path: Path) -> None:
    """R-RUN-9, R-GIT-2, F36: a snapshot on interruption, a next command, no process left, nothing lost.

    The interruption is not a failure of the task: with one attempt allowed, the task still gets it.
    """
    project.repo.write("mine.txt", "mine\n")
    flags = ("--approve", project.approval(), "--max-attempts", "1")
    with project.running("execute-phase", "1", *flags) as run:
        run.wait_for("attempt.started", "T1-02")
        with open(tmp_path / "door", encoding="ascii") as door:
            sleeper = int(door.readline())
        os.kill(run.pid, signal.SIGINT)
        assert run.end() == 130
    assert "idumb resume 1" in run.err
    assert has_ended(sleeper)
    assert harness.left_behind(project) == []
    kinds = [event["kind"] for event in run.seen]
    assert "run.interrupted" in kinds
    cut = next(event for event in run.seen if event["kind"] == "attempt.interrupted")
    assert cut["task"] == "T1-02"
    assert project.repo.tree(cut["payload"]["snapshot"])
    assert project.repo.git("show", f"{cut['payload']['left']}:b.txt") == "half"
    assert not project.exists("b.txt")
    assert project.json("status").data["next"]["command"] == "idumb resume 1"
    assert project.resume("--max-attempts", "1", "--no-verify").code == 0
    assert project.read("b.txt") == "half\nwhole\n"
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02", "T1-03"]
    assert project.repo.status() == ["?? mine.txt"]
    shown = project.json("show", "T1-02").data
    assert [row["outcome"] for row in shown["attempts"]] == ["interrupted", "completed"]
    assert shown["attempts"][-1]["attempt"] == 2
    assert project.json("show", "T1-02").data["status"] == "completed"


def test_a_terminated_run_records_it_and_reports_it_in_json_too(project: Project, tmp_path: Path) -> None:
    """R-RUN-9: one object on standard output, whatever happens."""
    consent = project.approval()
    started = warm.start(project.start, "execute-phase", "1", "--approve", consent, "--json")
    with open(tmp_path / "door", encoding="ascii") as door:
        door.readline()
    os.kill(started.pid, signal.SIGTERM)
    answer = started.wait()
    assert answer.code == 143
    assert answer.error["code"] == "run.interrupted"
    assert answer.error["hint"] == "idumb resume 1"
    (cut,) = (event for event in project.events("1") if event["kind"] == "attempt.interrupted")
    assert project.repo.tree(cut["payload"]["snapshot"])


@pytest.mark.nightly
@pytest.mark.parametrize("hook", seed.one_on_a_push(("pre-commit", "post-commit"), "hook"))
def test_an_executor_killed_during_git_commit_leaves_one_commit(project: Project, tmp_path: Path, hook: str) -> None:
    """F30, R-GIT-2: git may finish the commit after idumb is gone; `resume` adopts it or makes it, never both."""
    (tmp_path / "note").touch()
    victim, git = tmp_path / "victim", tmp_path / "git"
    os.mkfifo(victim)
    script = f"#!/bin/sh\ntest -e {git} && exit 0\necho $PPID > {git}\nread pid < {victim}\nkill -9 $pid\n"
    project.repo.write(f".git/hooks/{hook}", script, mode=0o755)
    started = warm.start(project.start, "execute-phase", "1", "--approve", project.approval())
    victim.write_text(f"{started.pid}\n", encoding="ascii")  # once the hook reads
    started.wait()
    assert has_ended(int(git.read_text(encoding="ascii")))  # the git program that idumb started ends on its own
    answer = project.resume("--no-verify")
    assert answer.code == 0, answer.out
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02", "T1-03"]
    assert project.repo.status() == []


CASES = [
    (0.02, signal.SIGINT), (0.2, signal.SIGTERM), (0.45, signal.SIGHUP), (0.7, signal.SIGINT), (0.95, signal.SIGTERM)
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    scene = Scene(SHAPES[0], tmp_path_factory.mktemp("interrupted"))
    scene.prepare()
    return scene


@pytest.mark.nightly
@pytest.mark.parametrize(("chance", "number"), CASES)
def test_a_run_interrupted_anywhere_resumes_to_the_same_end(scene: Scene, chance: float, number: int) -> None:
    """R-RUN-9."""
    project, (step,) = scene.copy(0), scene.shape.steps
    point = int(chance * len(scene.points[0]))
    answer = scene.say(project, step, {"at": point, "signal": number})
    assert answer is not None
    assert answer.code in {0, 128 + number}, answer
    assert "Traceback" not in answer.err, answer.err
    if answer.code:
        assert answer.error["code"] == "run.interrupted", answer
    assert harness.left_behind(project) == []
    resumed = scene.go_on(project, step)
    assert resumed is not None
    assert resumed.code == 0, resumed
    assert list(harness.wrong(project, scene.end)) == []
