"""A run ends between two tasks; Ctrl-C before a run; whose the working tree is (R-RUN-9, R-RUN-12)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task, write

WAYS = ["replan", "go-on", "start-fresh"]
WHY = "the plan is\x1b[31m out\nof date"


@contextmanager
def busy(project: Project, doors: Path) -> Iterator[warm.Started]:
    """A run in its first task, which opens two doors: it tells that it is at work, and waits until it is let go."""
    for door in ("at-work", "let-go"):
        os.mkfifo(doors / door)
    step = shell(f"test -p {doors}/at-work || exit 0; echo x > {doors}/at-work; cat {doors}/let-go > b.txt")
    slow = task("T1-01", files="create `b.txt`", check="test -s b.txt", steps=[step])
    project.plan([slow, task("T1-02", check="test -e later.txt", after="T1-01", steps=[shell("true")])])
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--json") as process:
        (doors / "at-work").read_text()
        yield process


def _stopped(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    with tempfile.TemporaryDirectory() as folder, busy(project, Path(folder)) as process:
        answer = project.json("stop", "--after-task", "--why", WHY)
        assert (answer.code, answer.data["ended"], answer.data["stopped"]) == (0, "stops after its task", False)
        assert (answer.data["owner"]["pid"], answer.data["next"]) == (process.pid, ["idumb status"])
        (Path(folder) / "let-go").write_text("go\n")
        ended = process.wait()
        assert (ended.code, ended.data["outcome"], ended.error["code"]) == (5, "paused", "run.paused")
        assert [choice["id"] for choice in ended.data["choices"]] == WAYS
    return project


stopped = prepared_project(_stopped)
"""A run that was asked to stop while it was in its first of two tasks."""


def test_the_current_task_is_finished_and_the_reason_is_kept(stopped: Project) -> None:
    """R-RUN-9, R-RUN-12: execute-phase does not continue silently; each next action is a command."""
    assert stopped.statuses() == {"T1-01": "completed", "T1-02": "ready"}
    (event,) = (event["payload"] for event in stopped.events("--kind", "run.paused"))
    assert event["reason"] == f"stopped by {event['by']}: {event['why']}"
    assert "of date" in event["why"]
    shown = stopped.json("status").data
    assert (shown["phases"][0]["state"], shown["next"]["command"]) == ("paused", "idumb resume 1")
    assert "\x1b" not in stopped.quick("status").out
    assert not (stopped.repo.common_dir / "idumb/worktrees/main/stop.json").exists()
    approved = stopped.json("approve", "1", "--hash", stopped.contract_hash())
    assert (approved.code, approved.data["next"]) == (0, ["idumb resume 1"])
    refused = stopped.execute()
    assert (refused.code, refused.error["code"]) == (4, "run.paused")
    assert [(c["id"], c["command"]) for c in refused.error["details"]["choices"]] == [
        ("replan", "idumb check-plan 1 --diff; idumb amend 1 --from-file"),
        ("go-on", "idumb resume 1"),
        ("start-fresh", "idumb rollback 1 --to start"),
    ]


def test_a_stopped_run_adopts_the_changed_plan_and_continues_with_resume_alone(stopped: Project) -> None:
    """R-RUN-12: replanning; it stays the same run, stays stopped and keeps completed work."""
    plan = stopped.folder / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text(encoding="utf-8").replace("later.txt", "b.txt"), encoding="utf-8")
    assert stopped.json("check-plan", "1", "--diff").code == 0
    amended = stopped.json("amend", "1", "--from-file", "--yes")
    assert amended.code == 0, amended
    assert stopped.json("status").data["phases"][0]["state"] == "paused"
    assert stopped.json("execute-phase", "1").error["code"] == "run.paused"
    resumed = stopped.resume("--no-verify")
    assert resumed.code == 0, resumed
    assert [e["attempt"] for e in stopped.events("--kind", "attempt.started", "--task", "T1-01")] == [1]


def test_a_command_that_runs_no_tasks_is_stopped_only_now(project: Project) -> None:
    assert project.json("stop", "--after-task").data["ended"] == "nothing ran"


# Presses Ctrl-C at the moment that a module is asked for: a place in the command that is the same each time.
WORDS = (130, "", ["idumb: interrupted [run.interrupted]", "  next: to see the state of the run: idumb status"])

PRESSING = """
import os, signal, sys
moment, sys.argv = sys.argv[1], ["idumb", *sys.argv[2:]]
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
from idumb.__main__ import main
main()
"""


@pytest.fixture
def small(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    return project


def test_ctrl_c_during_a_command_exits_with_130_and_one_line(small: Project) -> None:
    """The handling is that of the command line; each command has it."""
    assert interrupted(small, "idumb.app.upkeep.doctor", "doctor") == WORDS


def interrupted(project: Project, moment: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Return exit code, output and the visible text; a blank line only ends the one in which the terminal shows ^C."""
    process = subprocess.run(
        [sys.executable, "-c", PRESSING, moment, *arguments],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr.lstrip("\n").splitlines()


@pytest.mark.nightly
def test_the_owner_of_the_working_tree_is_shown_while_there_is_one(project: Project) -> None:
    """R-RUN-9: also in the view that an earlier command kept."""
    gate = project.folder.parent / "gate"
    os.mkfifo(gate)
    steps = [write("a.txt", "a\n"), shell(f"cat {gate}")]
    project.plan([task("T1-01", files="create `a.txt`", steps=steps)])
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--no-verify") as run:
        with gate.open("w"):  # the builder has begun
            owners = [project.json("status").data["owner"] for _ in range(2)]
            words = project.quick("next").out
        assert run.wait().code == 0
    for owner in owners:
        assert (owner["pid"], owner["command"], owner["standing"]) == (run.pid, "execute-phase", "running")
    assert re.search(
        rf"In use by process {run.pid} on .*, since [0-9-]+ [0-9:]+ UTC: execute-phase$", words, re.MULTILINE
    )
    assert project.json("status").data["owner"] is None
    assert "In use" not in project.quick("status").out
