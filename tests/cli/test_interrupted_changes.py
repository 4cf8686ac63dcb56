"""What an interrupted attempt changed outside its declared files is decided before the next attempt (R-GIT-5, F56).

`unit/app/test_recovery.py` has what the engine decides alone.
"""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed, warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Build, Prepared
from tests.support.project import Project, making, shell

STRAY = "stray.txt"
WAYS = ("kill", "cancel", "ctrl-c")
QUESTION = "T1-02.deviation.1"


def new(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "one\n", "notes.md": "mine\n"})


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return new(sandbox)


def plan(project: Project, door: Path) -> None:
    """The first attempt at the second task writes too much and then waits; later ones do only their work."""
    note = door.with_suffix(".note")
    slow = f"test -e {note} || {{ touch {note}; echo stray > {STRAY}; echo half > b.txt; echo > {door}; sleep 600; }}"
    project.repo.write("work.sh", f"{slow}\necho whole > b.txt\n")
    project.repo.commit("the work")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01", steps=[shell("sh work.sh")])])


def interrupt(project: Project, door: Path, way: str) -> None:
    os.mkfifo(door)
    started = warm.of_this_process().start(project.start, "execute-phase", "1", "--approve", project.approval())
    door.read_text()
    if way == "cancel":
        assert project.json("cancel").code == 0
    else:
        os.kill(started.pid, signal.SIGKILL if way == "kill" else signal.SIGINT)
    started.wait()


@functools.cache
def interrupted_by(way: str) -> Build:
    """A prepared project: its second task was interrupted in this way."""

    def build(sandbox: GitSandbox) -> Project:
        project = new(sandbox)
        door = project.folder.parent / way
        plan(project, door)
        interrupt(project, door, way)
        return project

    return build


@pytest.fixture
def killed(prepared: Prepared) -> Project:
    return prepared.get(interrupted_by("kill"))


def waits(answer: Answer, *paths: str) -> None:
    assert answer.data["outcome"] == "waiting", answer
    (decision,) = answer.data["decisions"]
    assert (decision["id"], decision["evidence"]) == (QUESTION, list(paths))


def committed(project: Project, path: str) -> bool:
    """Return whether the commit of the second task has the path."""
    commit = project.repo.git("log", "--format=%H", "--grep=Idumb-Task: T1-02")
    return path in project.repo.git("show", "--name-only", "--format=", commit).split()


@pytest.mark.parametrize("way", seed.one_on_a_push(WAYS, "guided"))
def test_a_guided_run_asks_before_the_task_is_tried_again(prepared: Prepared, way: str) -> None:
    project = prepared.get(interrupted_by(way))
    waits(project.resume(), STRAY)
    waits(project.resume(), STRAY)
    assert project.read(STRAY) == "stray\n"
    assert project.json("decide", QUESTION, "accept").code == 0
    answer = project.resume()
    assert answer.data["outcome"] == "complete", answer
    assert committed(project, STRAY)
    assert "not by its tasks" not in " ".join(answer.object["warnings"])


@pytest.mark.parametrize("way", ["amend", "retry"])
def test_every_offered_choice_does_what_it_says(killed: Project, way: str) -> None:
    """R-ASK-1."""
    choices = {choice["id"]: choice for choice in killed.resume().error["details"]["choices"]}
    assert list(choices) == ["look", "amend", "accept", "retry"]
    commands = [command.split()[1:] for command in choices[way]["command"].split(";")]
    answers = [killed.json(*command, *(["--yes"] if way == "amend" else [])) for command in commands]
    assert [answer.code for answer in answers] == [0] * len(commands), answers
    if way == "amend":
        approved = killed.execute(command="resume") if killed.resume().code else None
        assert approved is None or approved.code == 0, approved
    assert killed.statuses()["T1-02"] == "completed"
    assert committed(killed, STRAY) == (way != "retry")
    assert killed.exists(STRAY)


def test_what_nobody_decided_is_named_at_the_end(killed: Project) -> None:
    """A person accepts the task as it is, and with it only its declared files."""
    waits(killed.resume(), STRAY)
    assert killed.json("accept", "T1-02", "--why", "good enough").code == 0
    warnings = killed.resume().object["warnings"]
    words = "Changed since an attempt began that was interrupted, by it, by a check or by you"
    assert warnings == [f"{words}: {STRAY}"]
    assert killed.repo.status() == [f"?? {STRAY}"]


CLONES = ("run: {workspace: clone}\n", "git: {commit: builder}\n")


@pytest.mark.parametrize("configuration", seed.one_on_a_push(CLONES, "clones"))
def test_in_a_clone_nothing_is_left_to_decide(project: Project, configuration: str) -> None:
    door = project.folder.parent / "door"
    plan(project, door)
    project.configure(configuration)
    notes = project.folder / "notes.md"
    slow = project.read("work.sh").replace("echo half", f"echo bad > {notes}; echo half")
    project.repo.write("work.sh", slow)
    project.repo.commit("it leaves its clone", "work.sh")
    interrupt(project, door, "kill")
    answer = project.resume()
    assert answer.data["outcome"] == "complete"
    assert not project.exists(STRAY)
    said = " ".join(answer.object["warnings"])
    assert "While T1-02 was built in a clone, files of your own working tree changed: notes.md." in said
    assert "notes.md as it was before T1-02: git show" in said
    assert project.read("notes.md") == "bad\n"  # perhaps the user wrote that
    assert project.repo.git("show", "HEAD:notes.md") == "mine"
