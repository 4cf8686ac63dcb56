"""Combinations of features that once failed."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.support import ended_runs
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task

# -- failures that a person fixes ---------------------------------------------------------------------------------


def test_completed_work_that_the_plan_changed_is_reverted_before_it_is_repeated(prepared: Prepared) -> None:
    """R-RUN-12: the refusal names the next step; `ended_runs.replaced` goes on to the end."""
    project = prepared.get(ended_runs.done)
    project.plan([making("T1-01", "a.txt", "other\n")])
    refused = project.execute()
    assert (refused.code, refused.error["code"]) == (4, "plan.done-changed")
    assert "idumb rollback 1 --to start" in refused.error["hint"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")


def test_show_prints_the_files_of_a_killed_attempt(project: Project, tmp_path: Path) -> None:
    """R-LOG-6, R-GIT-2: they are in no tree of the user's, and the next attempt starts without them."""
    note = tmp_path / "again"
    kill = shell(f"[ -e {note} ] || {{ touch {note}; kill -9 $PPID; }}")
    steps = [shell("echo half >> README.md"), kill, shell("echo more >> README.md")]
    project.plan([task("T1-01", files="modify `README.md`", steps=steps)])
    before = project.read("README.md")
    assert project.idumb("execute-phase", "1", "--approve", project.approval()).code == -9
    assert project.read("README.md") == before
    assert project.resume("--no-verify").code == 0
    assert project.read("README.md") == f"{before}half\nmore\n"
    killed = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert project.repo.git(*shlex.split(killed["kept"][0])[1:]) == f"{before}half"


# -- people -------------------------------------------------------------------------------------------------------


# -- hooks, policies, places --------------------------------------------------------------------------------------
