"""`idumb watch`: a run that another process works on."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.plans import run
from tests.support.project import Project, failing_task, making, shell


def test_one_frame_shows_each_task_of_a_run_with_its_status(project: Project) -> None:
    """R-OPS-1."""
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")])
    assert run(project, "--max-attempts", "2").code == 1
    frame = project.quick("watch", "--once")
    assert frame.code == 0
    rows = [line.split() for line in frame.out.splitlines()]
    assert rows[0][:4] == ["T1-01", "Task", "T1-01", "completed"]
    assert (rows[1][3], rows[1][-2:]) == ("failed", ["attempt", "2"])
    shown = project.json("watch", "1", "--once").data
    assert [(row["id"], row["status"]) for row in shown["tasks"]] == [("T1-01", "completed"), ("T1-02", "failed")]


def test_without_any_run_there_is_nothing_to_watch(project: Project) -> None:
    assert project.json("watch", "--once").error["code"] == "run.none"


def test_without_a_terminal_the_lines_of_another_process_come_until_its_run_ends(project: Project) -> None:
    door = project.folder.parent / "door"
    os.mkfifo(door)
    steps = [shell(f"read line < {door}; echo made > a.txt")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    consent = project.quick("check-plan", "1", "--json").data["consent_hash"]
    with project.started("execute-phase", "1", "--approve", consent, "--no-verify", "--events") as working:
        assert working.stdout is not None
        next(line for line in working.stdout if '"attempt.started"' in line)
        command = [sys.executable, "-m", "idumb", "watch", "--bell"]
        with subprocess.Popen(command, cwd=project.folder, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            seen = [next(line for line in watching.stdout if "T1-01" in line)]
            door.write_text("open\n")
            seen += list(watching.stdout)
    assert watching.returncode == 0
    assert seen[0].startswith("[1/1] T1-01 Task T1-01")
    assert any(line.strip().startswith("completed in") for line in seen)
    assert "".join(seen).count("\a") == 1
    assert seen[-1].lstrip("\a") == "Phase 1: the run is completed, 1 of 1 tasks done\n"
