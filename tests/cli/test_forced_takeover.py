"""The log names commands that took over the working tree while its owner was alive (R-LOG-5)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "door")
    step = shell(f"echo half > a.txt; read line < {tmp_path / 'door'}")
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q whole a.txt", steps=[step])])
    return project


@pytest.fixture
def busy(project: Project) -> Iterator[warm.Started]:
    """A run whose first task waits until the test writes to the named pipe."""
    with project.beside("execute-phase", "1", "--approve", project.approval()) as run:
        yield run


def test_a_command_that_takes_over_from_a_living_owner_names_it_in_the_log(
    project: Project, busy: warm.Started, tmp_path: Path
) -> None:
    with open(tmp_path / "door", "w", encoding="ascii") as door:  # the builder has begun
        (project.repo.common_dir / "idumb/worktrees/main/owner.lock").unlink()
        assert project.idumb("accept", "T1-01", "--why", "looks fine").code == 0
        door.write("go on\n")
    assert busy.wait().code == 4
    started = project.events("--kind", "operation.started")
    assert [event["payload"].get("overtook", {}).get("pid") for event in started] == [None, busy.pid]


def test_a_command_after_the_owner_ended_is_not_a_takeover(
    project: Project, busy: warm.Started, tmp_path: Path
) -> None:
    with open(tmp_path / "door", "w", encoding="ascii"):
        os.kill(busy.pid, 9)
        busy.wait()
        assert project.idumb("accept", "T1-01", "--why", "looks fine").code == 0
    assert [event for event in project.events("--kind", "operation.started") if "overtook" in event["payload"]] == []
