"""`idumb watch`: a run that another process works on."""

from __future__ import annotations

import io
import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from idumb.cli import main, watching
from idumb.system.clock import SystemClock
from tests.cli.test_report_page import reviewed
from tests.support import warm
from tests.support.plans import run
from tests.support.prepared import Prepared
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


@pytest.mark.usefixtures("home")
def test_what_a_run_may_cost_is_shown_before_it_and_on_the_board(prepared: Prepared) -> None:
    """R-OPS-1: an attempt that waited ends twice, and its cost counts once."""
    project = prepared.get(reviewed)
    assert "of 2 tasks, $0.50\n" in project.quick("watch", "--once").out
    project.configure(
        f"{project.read('.idumb/config.yaml')}ceilings: {{run: {{cost_usd: 5}}, task: {{attempts: 3}}}}\n"
    )
    frame = project.quick("watch", "--once").out.splitlines()
    assert frame[2] == "1 completed, 1 waiting of 2 tasks, $0.50 of $5.00"
    assert frame[0].index("completed") == frame[1].index("waiting")
    checked = project.json("check-plan", "1").data
    assert checked["limits"] == {"run": "$5.00", "task": "3 attempts"}
    assert "  a run may use $5.00\n" in project.quick("check-plan", "1").out
    project.plan([making("T2-01", "c.txt")], phase="2")
    asked = project.json("execute-phase", "2").error["details"]["evidence"]
    assert {"a run may use $5.00", "a task may use 3 attempts"} <= {*asked}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("home")
def test_every_phase_is_shown_with_the_newest_events_and_again_when_they_change(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-OPS-1."""
    project = prepared.get(reviewed)
    shown = project.json("watch", "--all").data
    assert shown["status"] == project.json("status").data
    assert shown["events"][-1]["seq"] == project.events("1")[-1]["seq"]
    text = project.quick("watch", "--all").out
    assert text.index("Phase 1 The first step: halted") < text.index("Newest events:") < text.index("task.waiting")
    screen, pauses = Terminal(), iter(range(2))

    def pause(*_: object) -> None:
        if next(pauses) == 1:
            raise KeyboardInterrupt
        assert project.idumb("decide", "T1-02.AC-1.1", "yes").code == 0

    monkeypatch.setattr(SystemClock, "pause", pause)
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main.run(["watch", "--all"]) == 130
    assert capsys.readouterr().err == "", "Ctrl-C is how one leaves it"
    first, second = screen.getvalue().split("Phase 1 The first step")[1:]
    assert "decision.answered" not in first
    assert "decision.answered" in second
    assert screen.getvalue().endswith("\x1b[?25h\x1b[?1049l"), "the screen is as before"


def test_the_programs_that_run_say_what_works_on_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-OPS-1: a check may run beside the agent; without either, git delivers."""
    (tmp_path / "T1-01-1-builder.log").write_text("reads a.py\nedits a.py\n900 tokens so far\n", encoding="utf-8")
    agent, check, git = ["coder", "-p"], ["/bin/sh", "-c", "pytest -q"], ["/usr/bin/git", "commit"]
    sight = watching.Sight(Namespace(), 1)  # type: ignore[arg-type]
    sight._folder = str(tmp_path)
    for programs, words in (([agent, check], "agent"), ([check], "check `pytest -q`"), ([git], "delivery"), ([], "")):
        monkeypatch.setattr("idumb.system.process_tree.commands", lambda _, now=programs: now)
        assert sight.look("T1-01", len(words), ("pytest -q",)).words == words
    monkeypatch.setattr("idumb.system.process_tree.commands", lambda _: [agent])
    assert sight.look("T1-01", 1, ()) == ("agent", "edits a.py", 900)


def test_without_any_run_there_is_nothing_to_watch(project: Project) -> None:
    assert project.json("watch", "--once").error["code"] == "run.none"


@pytest.mark.nightly
def test_without_a_terminal_the_lines_of_another_process_come_until_its_run_ends(
    project: Project, tmp_path: Path
) -> None:
    began, door, lines = tmp_path / "began", tmp_path / "door", tmp_path / "lines"
    for pipe in (began, door, lines):
        os.mkfifo(pipe)
    steps = [shell(f"echo > {began}; read line < {door}; echo made > a.txt")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--no-verify") as working:
        began.read_text(encoding="ascii")
        watching = warm.start(project.start, "watch", "--bell", pipe=lines)
        with lines.open(encoding="utf-8") as printed:
            seen = [next(line for line in printed if "T1-01" in line)]
            door.write_text("open\n", encoding="ascii")
            seen += list(printed)
        assert (watching.wait().code, working.wait().code) == (0, 0)
    assert seen[0].startswith("[1/1] T1-01 Task T1-01")
    assert any(line.strip().startswith("completed in") for line in seen)
    assert "".join(seen).count("\a") == 1
    assert seen[-1].lstrip("\a") == "Phase 1: the run is completed, 1 of 1 task done\n"
