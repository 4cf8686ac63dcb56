"""A kill between the last commit of a run and its reports: `resume` commits them once."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from idumb.store.event_log import SqliteEventLog
from tests.support import project as projects
from tests.support import seed, warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import making


def die(kind: str) -> None:
    """Kill the process when it is about to record an event, as pulling the plug would."""
    inner = SqliteEventLog.append

    def append(self: SqliteEventLog, events: Any, **options: Any) -> Any:
        if any(event.kind == kind for event in events):
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(self, events, **options)

    SqliteEventLog.append = append  # type: ignore[method-assign]


BEFORE = ("checkpoint.recorded", "run.completed", "verification.recorded", "reports.committed")


@pytest.mark.parametrize("before", seed.one_on_a_push(BEFORE, "reports"))
def test_resume_writes_the_reports_of_a_killed_run_once(sandbox: GitSandbox, before: str) -> None:
    """R-OPS-2: the last is the moment after their commit and before the event that records it."""
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.plan([making("T1-01", "a.txt")])
    arguments = ("execute-phase", "1", "--approve", project.approval(), "--json")
    killed = warm.of_this_process().run(project.start, *arguments, hook=f"{__name__}:die", given=before)
    assert killed.code == -signal.SIGKILL, killed
    for _ in range(2):
        assert project.json("resume", "1").code == 0
        assert len(project.trailers("Idumb-Reports")) == 1
        assert len(project.trailers("Idumb-Task")) == 1
        assert project.repo.status() == []
    assert len(project.events("--kind", "reports.committed")) == 1
