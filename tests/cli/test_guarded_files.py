"""Git's own files that changed during a task are refused until a person accepts or reverts the change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write

HOOK = ".git/hooks/pre-commit"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": "one\n"})
    steps = [write("b.txt", "b\n"), shell("sh ../actor")]
    project.plan([making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", after="T1-01", steps=steps)])
    return project


def actor(project: Project, *lines: str) -> Path:
    place = project.folder.parent / "actor"
    place.write_text("\n".join((*lines, "exit 0", "")))
    return place


def plants(project: Project, *more: str) -> None:
    """The second task is tampered with: a hook appears, which would tell that git ran it."""
    hook = project.folder / HOOK
    actor(
        project, f"mkdir -p {hook.parent}", f"echo 'touch {project.folder.parent}/ran' > {hook}; chmod +x {hook}", *more
    )


def refused(project: Project, *arguments: str) -> Answer:
    answer = project.json(*arguments)
    assert answer.code == 4, answer
    assert answer.error["code"] == "git.guarded-changed", answer.error
    assert answer.error["details"]["paths"] == [HOOK]
    assert not (project.folder.parent / "ran").exists()
    return answer


def every_way(project: Project) -> None:
    hash_ = project.approval()
    refused(project, "resume", "1")
    refused(project, "execute-phase", "1", "--approve", hash_)
    refused(project, "rollback", "1", "--to", "start", "--yes")
    refused(project, "undo", "--yes")
    refused(project, "accept", "T1-02", "--why", "it is good")


def test_a_planted_hook_is_refused_until_it_is_removed(project: Project) -> None:
    plants(project)
    refused(project, "execute-phase", "1", "--approve", project.approval())
    every_way(project)
    every_way(project)
    (project.folder / HOOK).unlink()
    actor(project)
    assert project.json("resume", "1").data["outcome"] == "complete"
    assert project.events("1", "--kind", "guarded.accepted") == []


def test_a_person_can_accept_the_change_and_that_is_recorded(project: Project) -> None:
    plants(project)
    hint = refused(project, "execute-phase", "1", "--approve", project.approval()).error["hint"]
    assert f"idumb resume 1 --accept-git {HOOK}" in hint
    refused(project, "resume", "1", "--accept-git", ".git/config")
    actor(project)
    answer = project.json("resume", "1", "--accept-git", HOOK)
    assert answer.data["outcome"] == "complete", answer
    (event,) = project.events("1", "--kind", "guarded.accepted")
    assert event["payload"]["paths"] == [HOOK]
    assert HOOK in event["payload"]["guarded"]


def test_files_planted_before_idumb_was_killed_are_refused_too(project: Project) -> None:
    plants(project, "kill -9 $(cat ../pid); sleep 60")
    with project.started("execute-phase", "1", "--approve", project.approval()) as process:
        (project.folder.parent / "pid").write_text(str(process.pid))
        process.communicate(timeout=60)
    every_way(project)


def test_files_planted_before_an_interruption_are_refused_too(project: Project) -> None:
    plants(project, "kill -INT $(cat ../pid); sleep 60")
    with project.started("execute-phase", "1", "--approve", project.approval()) as process:
        (project.folder.parent / "pid").write_text(str(process.pid))
        process.communicate(timeout=60)
    assert process.returncode == 130
    every_way(project)


def test_user_changes_between_two_commands_are_accepted(project: Project) -> None:
    actor(project, "exit 1")
    assert project.execute().code == 1
    project.repo.git("config", "alias.x", "y")
    actor(project)
    assert project.json("resume", "1", "--retry-failed").data["outcome"] == "complete"
    project.repo.git("config", "alias.z", "y")
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
