"""A kill between the last commit of a run and its reports: `resume` commits them once."""

from __future__ import annotations

import pytest

from tests.crash import harness
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import making

BEFORE = ("checkpoint.recorded", "run.completed", "verification.recorded", "reports.committed")


@pytest.mark.parametrize("before", seed.one_on_a_push(BEFORE, "reports"))
def test_resume_writes_the_reports_of_a_killed_run_once(sandbox: GitSandbox, before: str) -> None:
    """R-OPS-2: the last is the moment after their commit and before the event that records it."""
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.plan([making("T1-01", "a.txt")])
    point = f"before SqliteEventLog.append .*{before}"
    killed = harness.run(project, "execute-phase", "1", "--approve", project.approval(), at=point)
    assert killed.code == harness.KILLED, killed
    for _ in range(2):
        assert project.json("resume", "1").code == 0
        assert len(project.trailers("Idumb-Reports")) == 1
        assert len(project.trailers("Idumb-Task")) == 1
        assert project.repo.status() == []
    assert len(project.events("--kind", "reports.committed")) == 1
