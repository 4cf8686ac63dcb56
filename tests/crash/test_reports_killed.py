"""A kill between the last commit of a run and its reports: `resume` commits or keeps them once."""

from __future__ import annotations

import itertools
import os
import signal
from typing import Any

import pytest

from idumb.store.event_log import SqliteEventLog
from tests.support import project as projects
from tests.support import seed, warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import making

REPORTS = {"branch": "reports.committed", "ref": "reports.kept"}


def die(kind: str) -> None:
    """Kill the process when it is about to record an event, as pulling the plug would."""
    inner = SqliteEventLog.append

    def append(self: SqliteEventLog, events: Any, **options: Any) -> Any:
        if any(event.kind == kind for event in events):
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(self, events, **options)

    SqliteEventLog.append = append  # type: ignore[method-assign]


BEFORE = ("checkpoint.recorded", "run.completed", "verification.recorded", "reports")
CASES = list(itertools.product(REPORTS, BEFORE))


@pytest.mark.parametrize(("reports", "before"), seed.one_on_a_push(CASES, "reports"))
def test_resume_writes_the_reports_of_a_killed_run_once(sandbox: GitSandbox, reports: str, before: str) -> None:
    """R-OPS-2: `reports` is the moment after their commit or ref and before the event that records it."""
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.configure(f"git: {{reports: {reports}}}\n")
    project.plan([making("T1-01", "a.txt")])
    kind = REPORTS[reports] if before == "reports" else before
    arguments = ("execute-phase", "1", "--approve", project.approval(), "--json")
    killed = warm.of_this_process().run(project.start, *arguments, hook=f"{__name__}:die", given=kind)
    assert killed.code == -signal.SIGKILL, killed
    for _ in range(2):
        assert project.json("resume", "1").code == 0
        assert len(project.trailers("Idumb-Reports")) == (reports == "branch")
        assert len(project.trailers("Idumb-Task")) == 1
        assert project.repo.status() == []
    recorded = [event for event in project.events("1") if event["kind"] in REPORTS.values()]
    assert len(recorded) <= 1
    if reports == "ref":
        names = sorted(path.rpartition("/")[2] for path in recorded[0]["payload"]["paths"])
        assert names == ["1-SUMMARY.md", "1-VERIFICATION.md", "checkpoint-T1-01.md"]
        assert not project.exists(".idumb/brain/execution/1/checkpoint-T1-01.md")
